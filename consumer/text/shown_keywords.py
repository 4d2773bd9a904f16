"""Chooses the keywords to show to people; stored and sent keywords stay complete.

Keywords serve comparison, so they include words and figures that mean nothing on their own.
"""

import re
from collections.abc import Iterable
from typing import Final

_ENGLISH: Final = """
a about above after again against all almost along already also although always am among an and another any
anybody anyone anything are around as at away back be became because become been before behind being below
between both but by came can cannot come could did do does doing done down during each either else enough even
ever every everybody everyone everything few for from further gave get gets give given go goes going gone got
had has have having he her here hers herself him himself his how however i if in instead into is it its itself
just keep kept last least less let like made make makes many may maybe me might more most much must my myself
near need neither never next no nobody none nor not nothing now of off often on once one only onto or other
others our ours ourselves out over own per perhaps put quite rather really said same say saying says seem seemed
seems shall she should since so some somebody someone something soon still such take taken than that the their
theirs them themselves then there therefore these they thing things this those though three through thus till to
together too took toward towards two under until up upon us use used very was way we well went were what
whatever when where whether which while who whole whom whose why will with within without would yes yet you your
yours yourself yourselves
"""
_CHINESE: Final = """
一下 一个 一些 一切 一定 一方面 一旦 一样 一直 一种 一般 一起 一边 不仅 不会 不但 不再 不同 不同于 不如 不少
不得 不得不 不必 不是 不管 不能 不能不 不要 不论 不过 与其 为了 为什么 为何 之一 之前 之后 之间 也是 也许 于是
什么 今后 从而 他们 他的 以上 以下 以为 以便 以前 以及 以后 以来 任何 任何人 似乎 但是 何时 作为 你们 你的 使得
依照 便是 倘若 假如 光是 全部 关于 其中 其他 其它 其实 其次 具有 再次 几乎 凡是 别人 别的 刚刚 到底 即使 却是
及其 又是 反而 只是 只有 只要 只能 可以 可是 可能 各个 各种 各自 同时 后来 否则 含有 咱们 哪些 哪儿 哪里 哪个
哪怕 唯有 因为 因此 在于 大家 大约 她们 她的 如下 如何 如同 如果 如此 它们 它的 完全 对于 对此 将会 尤其 就是
就算 尽管 已经 并且 并不 并非 彼此 往往 得到 怎么 怎么样 怎样 总是 总之 或是 或者 所以 所有 所谓 才能 才是 按照
据说 据此 接着 故此 无论 既然 既是 时候 是否 是的 曾经 更加 最后 最近 有些 有关 有时 有的 本身 根据 某些 某个
比如 比较 沿着 没有 然后 然而 照着 特别是 现在 甚至 由于 由此 的话 目前 直到 相同 看到 看来 真的 着呢 立即 等等
简直 经过 继续 继而 罢了 而且 而是 而言 自己 自从 若是 若非 虽然 虽说 觉得 许多 认为 诸如 谁知 趁着 起来 跟着
较为 较之 还是 还有 这个 这么 这些 这儿 这时 这样 这次 这种 这里 进而 连同 进行 通常 通过 那个 那么 那些 那儿
那时 那样 那种 那里 部分 里面 除了 除非 随后 随着 随时 非但 非常 首先
"""
_ARABIC: Final = """
أن أنه أنها إن إنه إنها أو أم أي أيضا أيضًا إذا إذ إلا إلى الى إما أما أمام أكثر أقل بعد بعض بل بين تحت تلك ثم حتى حول
حيث حين خلال دون ذلك عبر عدم على عليه عليها عن عند عندما غير فقط فوق في فيه فيها قبل قد كان كانت كل كما كي كيف لا لدى
لقد لكن لكنه لم لما لماذا لن له لها لهم لو ليس ليست ما ماذا متى مثل مع معه منذ من منه منها نحو هذا هذه هم هنا هناك هو
هؤلاء هي وأن وإن وفي وقد وكان وكانت ولا ولم ومن وهو وهي يكون تكون التي الذي الذين
"""
_RUSSIAN: Final = """
а без более будет будут бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее её
если есть еще ещё же за здесь и из или им их к как какой когда которая которого которое которой которые который которых
кто ли лишь между меня мне много может можно мы на над надо нам нас не него нее неё нет ни них но ну о об однако он она
они оно от очень перед по под после потому при про с сам себя со так также такой там те тем то того тоже той только том
тот ту у уже хотя чего чем через что чтобы эта эти этим этих это этого этой этом этот эту я
"""
STOP_WORDS: Final = frozenset(f"{_ENGLISH}{_CHINESE}{_ARABIC}{_RUSSIAN}".split())
"""Words that do not tell what a text is about, in English, Chinese (simplified), Arabic and Russian."""
_NUMBER: Final = re.compile(r"[1-9][0-9]{3,}|[0-9]+(\.[0-9]+%?|%)")
"""Matches figures to show. Integers of up to three digits may be part of a number: 40,000 is cut into 40 and 000."""


def shown_keywords(words: Iterable[str]) -> tuple[str, ...]:
    """Return the keywords except stop words and figures that may be fragments of a number."""
    return tuple(word for word in words if _is_meaningful(word))


def _is_meaningful(word: str) -> bool:
    if any(char.isalpha() for char in word):
        return word.casefold() not in STOP_WORDS
    return _NUMBER.fullmatch(word) is not None or not any(char.isdigit() for char in word)
