"""A short text in each of eleven languages, and ways to disguise it that a reader sees through."""

from itertools import pairwise
from typing import Final

TEXTS: Final = {
    "en": "The harbour council opened the new ferry terminal on Monday, after 3 years of works; H2 and H4 stay closed.",
    "zh": "港务委员会周一启用了新的渡轮码头，建设历时3年；二月和四月开放的2号、4号泊位仍然关闭，软件工程师可以参观。",
    "zh-Hant": "港務委員會週一啟用了新的渡輪碼頭，建設歷時3年；乾坤號與乾淨的著名軟體工程師的滑鼠仍然說著關閉。",
    "ja": "港湾評議会は月曜日、3年の工事を経て新しいフェリーターミナルを開業した。ロビーとカフェの二階はまだ工事中だ。",
    "ko": "항만 위원회는 월요일에 3년간의 공사 끝에 새 여객선 터미널을 열었다. 2번과 4번 부두는 아직 닫혀 있다.",
    "ru": "Совет порта открыл в понедельник новый паромный терминал после 3 лет работ; ёлки и йод ещё закрыты.",
    "ar": "أعلنت بلدية المرفأ الجديد يوم الاثنين افتتاح محطة العبارات بعد ٣ سنوات من أعمال البناء، وقال رئيس المجلس.",
    "he": "מועצת הנמל פתחה ביום שני את מסוף המעבורות החדש אחרי 3 שנות עבודה, אך הרציף הישן יישאר סגור.",
    "th": "สภาท่าเรือเปิดท่าเรือเฟอร์รี่แห่งใหม่เมื่อวันจันทร์ หลังจากก่อสร้างมานาน 3 ปี เขาบอกว่าน้ำขึ้นสูง",
    "hi": "बंदरगाह परिषद ने सोमवार को 3 साल के काम के बाद नया फेरी टर्मिनल खोला; ज़मीन की क़ीमत बढ़ी है।",
    "vi": "Hội đồng cảng đã mở bến phà mới vào thứ Hai sau 3 năm xây dựng; đường cũ vẫn còn đóng cửa.",
}
INSERTED: Final = {
    "space": " ",
    "dot": ".",
    "middle dot": "·",
    "hyphen": "-",
    "line end": "\n",
    "low line": "_",
    "emoji": "😀",
    "flag": "🇨🇳",
    "zero width": "\u200b",
    "strike-through": "\u0336",
    "overlay": "\u0338",
    "blank": "\u2800",
    "dot below": "\u0323",
    "acute": "\u0301",
    "enclosing circle": "\u20dd",
}
"""What is put behind each character."""
EQUAL_INSERTED: Final = ("zero width", "strike-through", "blank")
"""What of it changes nothing where texts are compared by equality."""
EQUAL_BETWEEN_LETTERS: Final = ("space", "dot", "middle dot", "hyphen", "line end", "low line")
"""What changes nothing there between two letters."""


def spaced(text: str, inserted: str) -> str:
    """Return the text with this behind each of its characters."""
    return "".join(character + inserted for character in text)


def between_letters(text: str, inserted: str) -> str:
    """Return the text with this between each two letters."""
    parts = [character + inserted * (character.isalpha() and behind.isalpha()) for character, behind in pairwise(text)]
    return "".join((*parts, text[-1:]))
