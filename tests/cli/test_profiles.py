"""A feed of posts: reposts are flagged where a feed of news keeps them, and rules keep the threshold of an agency."""

from pathlib import Path

from tests.cli.command import FAST, json_lines, run_process, write_lines

POST = (
    "港务局今天上午公布了新渡轮码头的时刻表：从周一起，去灯塔岛的船每四十分钟一班，末班船晚上十点二十分开出，"
    "自行车免费，狗要拴绳。旧栈桥明年春天拆除，原地修一个小公园和鱼市。"
)
REPOSTS = {
    "headline": f"【好消息，等了三年】大家快看，老王说的是真的！{POST}",
    "comment": f"{POST}我家就住码头边上，终于不用半夜赶车了，周末带孩子去看看，有没有一起的？",
    "cut": POST[: len(POST) * 2 // 3] + "详情见评论。",
}
OTHER = (
    "气象台今天上午公布了周末的天气：从周六起，北部山区有中到大雨，最低气温降到十度，出门要带伞，开车要慢行。"
    "旧桥明年春天加固，桥上只走行人，公交车改走新桥，请大家提前安排好时间。"
)


def flagged(tmp_path: Path, profile: str, *options: str, source: str = "blog") -> set[str]:
    """Return the ids that are flagged of a feed with a post, its reposts from a source, and another post."""
    feed = tmp_path / f"{profile}{len(options)}.jsonl"
    posts = {"post": POST, "other": OTHER, **REPOSTS}
    write_lines(feed, [{"id": name, "source": source, "body": body} for name, body in posts.items()])
    ended = run_process(
        *("run", "--source", feed, "--sink", "-", "--store", "memory:"),
        *("--set", f"judge.profile={profile}", *options, *FAST),
    )
    assert ended.code == 0, ended.err
    return {verdict["id"] for verdict in json_lines(ended.out) if verdict["duplicate_of"] == "post"}


def test_reposts_are_flagged_among_posts(tmp_path: Path) -> None:
    """Under another headline, with a comment, and cut; not another post that begins alike."""
    assert flagged(tmp_path, "posts") == REPOSTS.keys()
    assert flagged(tmp_path, "news") < REPOSTS.keys()


def test_a_rule_keeps_an_agency_apart(tmp_path: Path) -> None:
    """In a mixed feed its articles need as much in common as among news."""
    rule = ("--set", 'rules={"agency"={"profile"="news"}}')
    assert flagged(tmp_path, "mixed", *rule, source="agency") == flagged(tmp_path, "news")
    assert flagged(tmp_path, "mixed", *rule) == REPOSTS.keys()
