"""Texts that jieba has no keywords for: how they are matched, and that README says so."""

from itertools import pairwise
from pathlib import Path

import pytest

from consumer.fingerprint import Fingerprinter, Scheme, TextKind, sketch_similarity
from consumer.workers.word_files import load_lexicon

EXTENSION_B = "".join(map(chr, range(0x20000, 0x20100)))
LETTERS = {
    "kana": "ひらがなとカタカナのながいぶんしょうです。まいあさはやくおきて、ちかくのこうえんをさんぽするのがすきです。"
    "きょうはあめがふっているので、うちでほんをよみます。ゆうがたにはともだちがきて、いっしょにごはんをつくるつもりです。"
    "あしたはやすみなので、おそくまではなしていてもかまいません。",
    "Hangul": "안녕하세요여러분오늘의뉴스입니다. 시내중심가에새로운다리가열렸습니다. "
    "시장은개통식에서시민들에게감사의말을전했습니다. "
    "다리의길이는약팔백미터이며공사에는삼년이걸렸습니다. 주말에는무료로건널수있고자전거도로도마련되어있습니다. "
    "주민들은강건너편으로가는시간이절반으로줄었다고기뻐했습니다.",
    "Cyrillic": "Сегодня в городе открыли новый мост через реку. "
    "На церемонию пришли сотни жителей, несмотря на сильный ветер. "
    "Строительство заняло три года и обошлось дешевле, чем ожидалось.",
    "Greek": "Σήμερα άνοιξε η νέα γέφυρα της πόλης. Εκατοντάδες κάτοικοι ήρθαν στην τελετή παρά τον δυνατό άνεμο. "
    "Η κατασκευή κράτησε τρία χρόνια και κόστισε λιγότερο από το αναμενόμενο.",
    "Arabic": "افتتح اليوم الجسر الجديد في المدينة بحضور مئات السكان رغم الرياح القوية. "
    "استغرق البناء ثلاث سنوات وكانت تكلفته أقل مما كان متوقعا، وسيعبره السكان مجانا في عطلة نهاية الأسبوع.",
    "Thai": "วันนี้เปิดสะพานใหม่ในเมือง ชาวบ้านหลายร้อยคนมาร่วมพิธีแม้ลมจะแรง "
    "การก่อสร้างใช้เวลาสามปีและใช้เงินน้อยกว่าที่คาดไว้ "
    "ในวันหยุดสุดสัปดาห์ทุกคนข้ามได้ฟรี และมีทางสำหรับจักรยานด้วย",
    "rare Chinese characters": EXTENSION_B,
}
OTHERS = {"emoji": "😀🎉🚀🌍🍎🐶👍🔥" * 30, "U+3400": "".join(map(chr, range(0x3400, 0x3460)))}
README = Path(__file__).parents[3] / "README.md"


@pytest.fixture(scope="module")
def fingerprinter() -> Fingerprinter:
    """With the default scheme."""
    return Fingerprinter(Scheme("jieba-tfidf/2"), load_lexicon())


@pytest.mark.parametrize("name", LETTERS)
def test_a_long_text_is_compared_by_its_letters(name: str, fingerprinter: Fingerprinter) -> None:
    """An edited copy stays similar, though there is no keyword; README names the script."""
    text = LETTERS[name]
    found = fingerprinter.fingerprint([text, f"{text[:-12]}{text[-9:]}"])
    assert list(found.keyword_counts) == [0, 0]
    assert list(found.kinds) == [TextKind.SHINGLED] * 2
    assert sketch_similarity(found.sketches[0], found.sketches[1]) > 0.8
    assert name in README.read_text(encoding="utf-8").partition("- **Short posts**")[2].partition("\n- ")[0]


@pytest.mark.parametrize("text", [*OTHERS.values(), *(text[:30] for text in LETTERS.values())])
def test_a_short_text_is_compared_by_its_digest(text: str, fingerprinter: Fingerprinter) -> None:
    """So is one of emoji, however long: an equal one has the same fingerprint, and one with another character not."""
    found = fingerprinter.fingerprint([text, text, text[:-1], f"{text}x"])
    assert list(found.kinds) == [TextKind.SHORT] * 4
    codes = found.codes[:, 0].tolist()
    assert codes[0] == codes[1]
    assert len(set(codes)) == 3
    assert all(first != second for first, second in pairwise(map(bytes, found.text_digests[1:])))


@pytest.mark.parametrize("text", [*LETTERS.values(), *OTHERS.values()])
def test_the_first_scheme_has_nothing_of_them(text: str) -> None:
    """Stores of ``/1`` go on as they are: such a text is matched by nothing there."""
    found = Fingerprinter(Scheme("jieba-tfidf/1"), load_lexicon()).fingerprint([text])
    assert list(found.kinds) == [TextKind.EMPTY]


def test_in_a_mixed_text_they_add_nothing_to_the_fingerprint(fingerprinter: Fingerprinter) -> None:
    """The code is that of the other words, the sketch is not."""
    plain = "苍浦地铁5号线下月试运行，坐到机场只要三十四分钟。票价三元起，全程十八站，早晚高峰四分钟一班。" * 2
    fingerprints = fingerprinter.fingerprint([plain, f"{plain} {EXTENSION_B}"], ["zh", "zh"])
    assert (fingerprints.codes[0] == fingerprints.codes[1]).all()
    assert (fingerprints.sketches[0] != fingerprints.sketches[1]).any()
