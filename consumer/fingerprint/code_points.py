"""Texts as arrays of code points, and back."""

import numpy as np
import numpy.typing as npt


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text without surrogates."""
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")


def text_of(codes: npt.NDArray[np.uint32]) -> str:
    """Return the text with these code points."""
    return codes.astype("<u4").tobytes().decode("utf-32-le")
