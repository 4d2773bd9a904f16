"""The images that ``make images`` builds and pushes are those that the overlays run."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[3]
REGISTRY: Final = "registry.example.org"


@pytest.mark.parametrize("overlay", ["small", "production"])
def test_the_images_of_an_overlay_are_built_and_pushed(overlay: str) -> None:
    """By their names and tags, from files that are there."""
    path = ROOT / "deploy" / "kubernetes" / "overlays" / overlay / "kustomization.yaml"
    images = yaml.safe_load(path.read_text(encoding="utf-8"))["images"]
    named = sorted(f"{image['newName']}:{image['newTag']}" for image in images)
    commands = subprocess.run(
        ["make", "--dry-run", "images", f"REGISTRY={REGISTRY}", "ENGINE=engine"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    built = re.findall(r"^engine build -f (\S+) -t (\S+) \.$", commands, re.MULTILINE)
    assert sorted(tag for _, tag in built) == named
    assert all((ROOT / file).is_file() for file, _ in built)
    assert sorted(re.findall(r"^engine push (\S+)$", commands, re.MULTILINE)) == named


def test_a_registry_must_be_named() -> None:
    """Or images would be pushed to a public one."""
    ended = subprocess.run(["make", "images", "ENGINE=false"], cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "make images REGISTRY=" in ended.stderr
