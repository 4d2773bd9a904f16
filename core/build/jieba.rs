//! Finds and reads the installed jieba package.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest};

use crate::layout::HAN;
use crate::literal::{Table, assigned};

/// The states of the model in alphabetical order: begin, end and middle of a word, and a single character.
pub const STATES: [&str; 4] = ["B", "E", "M", "S"];
/// The bytes of the digest.
pub const DIGEST_BYTES: usize = 16;
/// `MIN_FLOAT` of `finalseg/__init__.py`: the logarithm of what the model does not know.
const MIN_FLOAT: f64 = -3.14e100;
/// `_FILES` of `consumer/workers/word_files.py`, in the order of the digest.
const FILES: [&str; 5] = [
    "dict.txt",
    "finalseg/prob_start.py",
    "finalseg/prob_trans.py",
    "finalseg/prob_emit.py",
    "analyse/idf.txt",
];
/// The beginnings of the tags of names: `NAME_TAGS` of `consumer/fingerprint/slots.py`.
const NAME_TAGS: [&str; 3] = ["ns", "nr", "nt"];
/// Variables that name the Python to ask. `PyO3` has the first, maturin sets the last.
const PYTHONS: [&str; 2] = ["PYO3_PYTHON", "PYTHON_SYS_EXECUTABLE"];
/// Tells where the package is without importing it: that is slow, and newer versions of Python warn about its code.
const FIND: &str = "from importlib.util import find_spec
spec = find_spec('jieba')
print(spec.submodule_search_locations[0] if spec else '')";

/// What the package knows about words.
pub struct Package {
    /// The words of the dictionary with their frequencies.
    pub frequencies: BTreeMap<String, u64>,
    /// The words of the dictionary that are names of places, persons and institutions.
    pub names: BTreeSet<String>,
    /// The sum of all frequencies; jieba counts a word that is listed twice twice.
    pub total: u64,
    /// Inverse document frequencies.
    pub idf: BTreeMap<String, f64>,
    /// The logarithm of the probability of each state at the beginning.
    pub start: [f64; 4],
    /// That of each state after each state.
    pub transitions: [[f64; 4]; 4],
    /// That of each character of [`HAN`] in each state.
    pub emissions: Vec<[f64; 4]>,
    /// The `BLAKE2b` digest of all files, computed as in `consumer/workers/word_files.py`.
    pub digest: [u8; DIGEST_BYTES],
}

/// Ask Python where its jieba package is; panics with what to do if there is none.
pub fn folder() -> PathBuf {
    for name in PYTHONS {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let python = PYTHONS
        .into_iter()
        .find_map(env::var_os)
        .unwrap_or_else(|| OsString::from("python3"));
    let name = python.to_string_lossy();
    let what_to_do = format!(
        "the core is built with the words of jieba: run `{name} -m pip install jieba==0.42.1`, or name a Python that \
         has jieba in PYO3_PYTHON"
    );
    let answer = Command::new(&python).args(["-X", "utf8", "-c", FIND]).output();
    let answer = answer.unwrap_or_else(|error| panic!("{name} cannot be run ({error}); {what_to_do}"));
    let found = String::from_utf8(answer.stdout).expect("Python answers in UTF-8");
    let errors = String::from_utf8_lossy(&answer.stderr);
    assert!(
        answer.status.success() && !found.trim().is_empty(),
        "{name} has no jieba; {what_to_do}\n{errors}"
    );
    PathBuf::from(found.trim_end_matches(['\r', '\n']))
}

impl Package {
    /// Read the package in this folder; panics if a file is missing, or written in another way than jieba's.
    pub fn read(folder: &Path) -> Self {
        let contents = FILES.map(|name| read(&folder.join(name)));
        let digest = digest(&contents);
        let [dictionary, start, transitions, emissions, idf] = contents;
        let names = names(&dictionary);
        let (frequencies, total) = frequencies(&dictionary);
        Self {
            frequencies,
            names,
            total,
            idf: inverse_frequencies(&idf),
            start: by_state(&assigned::<f64>(&start)),
            transitions: of_transitions(&assigned(&transitions)),
            emissions: of_emissions(&assigned(&emissions)),
            digest,
        }
    }
}

fn read(path: &Path) -> String {
    println!("cargo:rerun-if-changed={}", path.display());
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()))
}

fn digest(contents: &[String; FILES.len()]) -> [u8; DIGEST_BYTES] {
    let mut hasher = Blake2b::<U16>::new();
    for (name, content) in FILES.iter().zip(contents) {
        hasher.update(format!("{name} {}\n", content.len()));
        hasher.update(content);
    }
    hasher.finalize().into()
}

/// Read lines of a word, a frequency and a tag, and the sum of the frequencies: `gen_pfdict` of `jieba/__init__.py`.
fn frequencies(content: &str) -> (BTreeMap<String, u64>, u64) {
    let (mut frequencies, mut total) = (BTreeMap::new(), 0);
    for line in content.lines() {
        let fields: Vec<_> = line.split(' ').collect();
        let [word, frequency, _] = fields[..] else {
            panic!("dict.txt: {line:?} is not a word, a number and a tag")
        };
        let frequency: u64 = frequency
            .parse()
            .unwrap_or_else(|_| panic!("dict.txt: {line:?} has no frequency"));
        // jieba takes a frequency of 0 for that of a beginning of words, which is no word.
        assert!(
            frequency > 0 && !word.is_empty(),
            "dict.txt: {line:?} is not a word that occurs"
        );
        frequencies.insert(word.to_owned(), frequency);
        total += frequency;
    }
    (frequencies, total)
}

/// Read the words whose tag, the last one of a word that is listed twice, is that of a name.
fn names(content: &str) -> BTreeSet<String> {
    let tags: BTreeMap<&str, &str> = content
        .lines()
        .filter_map(|line| Some((line.split(' ').next()?, line.rsplit(' ').next()?)))
        .collect();
    tags.into_iter()
        .filter(|(_, tag)| NAME_TAGS.iter().any(|name| tag.starts_with(name)))
        .map(|(word, _)| word.to_owned())
        .collect()
}

/// Read lines of a word and a number.
fn inverse_frequencies(content: &str) -> BTreeMap<String, f64> {
    let line = |line: &str| {
        let (word, number) = line
            .split_once(' ')
            .unwrap_or_else(|| panic!("idf.txt: {line:?} is not two fields"));
        let number: f64 = number
            .parse()
            .unwrap_or_else(|_| panic!("idf.txt: {line:?} has no number"));
        assert!(
            number.is_finite() && number > 0.0 && !word.is_empty(),
            "idf.txt: {line:?} is not a word and its IDF"
        );
        (word.to_owned(), number)
    };
    content.lines().map(line).collect()
}

fn by_state(table: &Table<f64>) -> [f64; 4] {
    STATES.map(|state| table.get(state).copied().unwrap_or(MIN_FLOAT))
}

fn of_transitions(table: &Table<Table<f64>>) -> [[f64; 4]; 4] {
    STATES.map(|state| by_state(&table[state]))
}

fn of_emissions(table: &Table<Table<f64>>) -> Vec<[f64; 4]> {
    let states = STATES.map(|state| &table[state]);
    HAN.map(|letter| states.map(|emitted| emitted.get(&letter.to_string()).copied().unwrap_or(MIN_FLOAT)))
        .collect()
}
