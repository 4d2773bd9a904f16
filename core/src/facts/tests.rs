//! Facts by example.

use super::*;

fn letters(text: &str) -> Vec<char> {
    text.chars().collect()
}

/// The sample of these facts.
fn sample(facts: &[&str]) -> Vec<u8> {
    let mut expected = Sample::default();
    for fact in facts {
        expected.add(fact.chars());
    }
    expected.packed()
}

#[test]
fn figures_of_a_text() {
    let examples: [(&str, &[&str]); 18] = [
        ("营收12.5亿元,增长3%", &["12.5", "3"]),
        ("revenue of 1,234,567.80 rose 5% to -3 or so", &["1234567.80", "5", "3"]),
        ("winning numbers 3,17,25", &["3,17,25"]),
        (
            "于2026年8月12日和8月13号、2027年",
            &["2026年8月12日", "8月13号", "2027年"],
        ),
        ("2026 年 8 月 12 日", &["2026年8月12日"]),
        ("2026年123月5日, 12345年", &["2026年", "123", "5", "12345"]),
        ("8月1234日", &["8", "1234"]),
        ("on 2026-11-21 at 12:30, 3-1.", &["2026-11-21", "12:30", "3-1"]),
        ("from 12 march 2026 to may 3rd", &["12march2026", "3may"]),
        ("by march 12th, 2026 and 2 june", &["12march2026", "2june"]),
        ("5年 march 20261", &["5年march", "20261"]),
        ("abcdseptember 5", &["5september"]),
        ("1 marching 2 mars", &["1", "2"]),
        (
            "航班mu5137与ca981、v1.2.3、a1b2c3.5",
            &["mu5137", "ca981", "v1.2.3", "a1b2c3"],
        ),
        ("abcdefghij1", &["cdefghij1"]),
        ("第三季度共二十三人,一个也没有", &["三", "二十三"]),
        ("x1 年 8 月, 1,2345 1,234.5.6", &["x1年8月", "1,2345", "1,234.5.6"]),
        ("nothing to tell here", &[]),
    ];
    for (text, facts) in examples {
        assert_eq!(
            packed("", &letters(text), std::iter::empty(), false),
            sample(facts),
            "{text}"
        );
    }
}

#[test]
fn canonical_figures_of_a_text() {
    let examples: [(&str, &[&str]); 11] = [
        ("1,234,567 1.234.567 1 234 567 1’234’567 1_234_567", &["1234567"]),
        ("1.234,56 and 1,234.56 and ١٬٢٣٤٫٥٦", &["1234.56"]),
        ("3,5 and 3.5, 0,123 and 0.123", &["3.5", "0.123"]),
        ("-5 (−5 –5 +5 5", &["-5", "+5", "5"]),
        ("3-1 2020–2021 a-7 - 8", &["3-1", "2020-2021", "7", "8"]),
        ("10 000–20 000, 1,234/2 345", &["10000-20000", "1234/2", "345"]),
        ("1.2.3 v1.234 192.168.100.200", &["1.2.3", "v1.234", "192.168.100.200"]),
        (
            "-2026-11-21, -5 may or 2026年8月12日",
            &["2026-11-21", "5may", "2026年8月12日"],
        ),
        (
            "x 101 102 103 104 105 106 107 108",
            &["101", "102", "103", "104", "105", "106", "107", "108"],
        ),
        ("1, 234 3,17,25 1'234'5", &["1", "234", "3,17,25", "5"]),
        ("10^6 106 -5-10 mu5 137", &["10", "6", "106", "-5-10", "mu5", "137"]),
    ];
    for (text, facts) in examples {
        assert_eq!(
            packed("", &letters(text), std::iter::empty(), true),
            sample(facts),
            "{text}"
        );
    }
}

#[test]
fn names_of_a_text() {
    let examples: [(&str, &[&str]); 8] = [
        (
            "The mayor of Harwick met him. Critics left in May. Joan Renner, of Aspera, stayed.",
            &["harwick", "joan", "renner", "aspera"],
        ),
        ("the mayor of Ｈａｒｗｉｃｋ said", &["harwick"]),
        (
            "with O\u{2019}Neil, Al-Amin; Bob (Carl ( Dan",
            &["al-amin", "bob", "dan"],
        ),
        ("by Har\u{200b}wick", &["harwick"]),
        ("McDonald X Y-Z", &["mcdonald", "y-z"]),
        ("A Bc De", &["bc", "de"]),
        ("An\nEnd An  End", &["end", "an"]),
        ("a \nB An End", &["an", "end"]),
    ];
    for (text, facts) in examples {
        assert_eq!(
            packed(text, &letters("latin"), std::iter::empty(), false),
            sample(facts),
            "{text}"
        );
        assert_eq!(
            packed(text, &letters("中文"), std::iter::empty(), false),
            Vec::<u8>::new()
        );
    }
}

#[test]
fn words_that_can_be_names() {
    for (word, can) in [
        ("梁一鸣", true),
        ("한국어", true),
        ("梁", false),
        ("梁1", false),
        ("Tallis", false),
        ("a梁", false),
    ] {
        assert_eq!(can_be_name(&letters(word)), can, "{word}");
    }
    assert!(!can_be_name(&[]));
    assert_eq!(
        packed("", &[], [letters("梁一鸣").as_slice()].into_iter(), false),
        sample(&["梁一鸣"])
    );
}

#[test]
fn a_sample_has_the_count_and_the_smallest_hashes() {
    assert_eq!(sample(&[]), Vec::<u8>::new());
    assert_eq!(
        sample(&["5", "12.5", "5"]),
        [0, 0, 0, 2, 0x81, 0xb8, 0x48, 0x0d, 0xf1, 0x81, 0x28, 0x3f]
    );
    let many: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let packed = sample(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((packed.len(), &packed[..4]), (4 + 64 * 4, [0, 0, 3, 232].as_slice()));
    assert!(packed[4..].chunks(4).is_sorted());
}

/// The expected packed slots, each given as surroundings and value.
fn slots(expected: &[(&str, &str)]) -> Vec<u8> {
    let mut hashes: Vec<[u32; 2]> = expected
        .iter()
        .map(|(surroundings, value)| [sample::hash(surroundings), sample::hash(value)])
        .collect();
    hashes.sort_unstable();
    hashes
        .as_flattened()
        .iter()
        .flat_map(|hash| hash.to_be_bytes())
        .collect()
}

#[test]
fn slots_of_a_text() {
    let examples: [(&str, &[(&str, &str)]); 6] = [
        ("会议将于3月5日上午9时召开", &[("议将于|时召开", "3月5日 上午 9")]),
        ("第三次,二十个,一人", &[("第|次\0个", "三"), ("第\0次|个一人", "二十")]),
        (
            "该书法文版、西班牙语版",
            &[("该书|版\0版", "法文"), ("书\0版|版", "西班牙语")],
        ),
        (
            "in march 5 to -3 or 1,5",
            &[("in|to\0", "5march"), ("\0to|or\0", "-3"), ("\0or|", "1.5")],
        ),
        ("甲队得3分吧,甲队得4分吧,甲", &[]),
        ("nothing to tell here", &[]),
    ];
    for (text, expected) in examples {
        assert_eq!(packed_slots(&letters(text), &[]), slots(expected), "{text}");
    }
    let (text, names) = (letters("昨天在北京、上海举行"), [3..5, 6..8]);
    assert_eq!(packed_slots(&text, &names), slots(&[("昨天在|举行", "北京 上海")]));
}

#[test]
fn a_record_has_at_most_64_slots() {
    let text: String = (0x4e00..0x4f00)
        .filter_map(char::from_u32)
        .flat_map(|letter| [letter, '9'])
        .collect();
    assert_eq!(packed_slots(&letters(&text), &[]).len(), 512);
}
