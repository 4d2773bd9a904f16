//! Hashes, sums, sketches, anchors and samples, facts and evidence, for tests.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::strings::text_of;
use crate::evidence::{self, Kind, Weighed};
use crate::facts;
use crate::hashes::{WordHash, siphash_13};
use crate::parts::Finder;
use crate::sketch::{self, Layout, OfLetters, Shingled, Sketch, TextOfLetters, TextOfWords};
use crate::summing;

type SketchParts<'py> = (Bound<'py, PyBytes>, u64, Vec<u64>, usize);

/// Add the functions of this part.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(hash_word, module)?)?;
    module.add_function(wrap_pyfunction!(fingerprint_of, module)?)?;
    module.add_function(wrap_pyfunction!(declared_shingle, module)?)?;
    module.add_function(wrap_pyfunction!(sketch_of, module)?)?;
    module.add_function(wrap_pyfunction!(sketch_letters, module)?)?;
    module.add_function(wrap_pyfunction!(parts_of, module)?)?;
    module.add_function(wrap_pyfunction!(parts_letters, module)?)?;
    module.add_function(wrap_pyfunction!(siphash, module)?)?;
    module.add_function(wrap_pyfunction!(facts_of, module)?)?;
    module.add_function(wrap_pyfunction!(runs, module)?)?;
    module.add_function(wrap_pyfunction!(heaviest, module)?)?;
    module.add_function(wrap_pyfunction!(kind, module)?)
}

/// The hash of a word in a scheme, as one number.
#[pyfunction]
fn hash_word(scheme: &str, word: &str) -> PyResult<u128> {
    let hash = WordHash::from_scheme(scheme).ok_or_else(|| PyValueError::new_err("unknown scheme"))?;
    Ok(joined(hash.hash(&letters(word), &mut Vec::new()), hash.bits()))
}

/// `consumer.fingerprint.summing.fingerprint_batch` of one text, given hashes with weights.
#[pyfunction]
#[pyo3(signature = (keywords, bits, *, tie))]
fn fingerprint_of(keywords: Vec<(u128, f64)>, bits: usize, tie: bool) -> PyResult<u128> {
    let parts = keywords.into_iter().map(|(hash, weight)| (split(hash, bits), weight));
    let code = summing::fingerprint(parts, bits, tie).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(joined(code, bits))
}

/// `consumer.fingerprint.sketch.declared_shingle`.
#[pyfunction]
fn declared_shingle(language: &Bound<'_, PyString>) -> PyResult<usize> {
    Ok(sketch::declared_shingle(&text_of(language)?))
}

/// `consumer.fingerprint.sketch.sketch_batch` of one text: sketch, one-bit minima, bands, filled bins.
#[pyfunction]
#[pyo3(name = "sketch")]
fn sketch_of<'py>(
    text: &Bound<'py, PyString>,
    language: &Bound<'py, PyString>,
    bands: usize,
    band_minima: usize,
) -> PyResult<SketchParts<'py>> {
    let layout = Layout::new(bands, band_minima).ok_or_else(|| PyValueError::new_err("the layout does not fit"))?;
    let (declared, letters) = (declared_shingle(language)?, letters(&text_of(text)?));
    let text_of_words = TextOfWords {
        text: &letters,
        declared,
    };
    Ok(sketch_parts(
        text.py(),
        sketch::sketch(&text_of_words, &layout, &mut ()),
    ))
}

/// The same for letters, hashed with this key.
#[pyfunction]
fn sketch_letters<'py>(
    text: &Bound<'py, PyString>,
    key: (u64, u64, u64),
    bands: usize,
    band_minima: usize,
) -> PyResult<SketchParts<'py>> {
    let layout = Layout::new(bands, band_minima).ok_or_else(|| PyValueError::new_err("the layout does not fit"))?;
    let letters = letters(&text_of(text)?);
    let found = sketch::sketch(&text_of_letters(&letters, key), &layout, &mut ());
    Ok(sketch_parts(text.py(), found))
}

/// `consumer.fingerprint.parts.parts_batch` of one text: anchors, sample.
#[pyfunction]
#[pyo3(name = "parts")]
fn parts_of<'py>(
    text: &Bound<'py, PyString>,
    language: &Bound<'py, PyString>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (declared, letters) = (declared_shingle(language)?, letters(&text_of(text)?));
    let text_of_words = TextOfWords {
        text: &letters,
        declared,
    };
    Ok(found_parts(text.py(), &text_of_words))
}

/// The same for letters, hashed with this key.
#[pyfunction]
fn parts_letters<'py>(
    text: &Bound<'py, PyString>,
    key: (u64, u64, u64),
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let letters = letters(&text_of(text)?);
    Ok(found_parts(text.py(), &text_of_letters(&letters, key)))
}

/// `consumer.fingerprint.hashing.siphash_13` of one value.
#[pyfunction]
fn siphash(value: u64, first: u64, second: u64) -> u64 {
    siphash_13(value, first, second)
}

/// `consumer.fingerprint.facts.facts_of`, packed; numbers are `canonical` in schemes that compare letters.
#[pyfunction]
#[pyo3(name = "facts", signature = (text, compared, words, known, *, canonical=false))]
fn facts_of<'py>(
    text: &Bound<'py, PyString>,
    compared: &str,
    words: Vec<String>,
    known: &Bound<'py, PyAny>,
    canonical: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut unknown = Vec::new();
    for word in words {
        let letters = letters(&word);
        if facts::can_be_name(&letters) && !known.contains(word)? {
            unknown.push(letters);
        }
    }
    let packed = facts::packed(
        &text_of(text)?,
        &letters(compared),
        unknown.iter().map(Vec::as_slice),
        canonical,
    );
    Ok(PyBytes::new(text.py(), &packed))
}

/// `consumer.fingerprint.text_kinds.runs`.
#[pyfunction]
#[pyo3(signature = (text, runs_max))]
fn runs(text: &str, runs_max: Option<usize>) -> Vec<(String, f64)> {
    evidence::runs(&letters(text), runs_max)
}

/// The places of the heaviest keywords; with `short`, of those of at most 64 characters.
#[pyfunction]
#[pyo3(signature = (keywords, keywords_max, *, short))]
fn heaviest(keywords: Vec<(String, f64)>, keywords_max: Option<usize>, short: bool) -> Vec<usize> {
    let (words, weights): (Vec<_>, Vec<_>) = keywords
        .into_iter()
        .map(|(word, weight)| (letters(&word), weight))
        .unzip();
    let keywords: Vec<_> = words
        .iter()
        .zip(weights)
        .map(|(word, weight)| Weighed { word, weight })
        .collect();
    if short {
        evidence::evidence(&keywords, keywords_max)
    } else {
        evidence::heaviest(&keywords, keywords_max)
    }
}

/// The kind of a text by its keywords alone; with `bins_min`, in a scheme for every script.
#[pyfunction]
#[pyo3(signature = (keywords, short_max, filled_bins, text, *, bins_min))]
fn kind(keywords: usize, short_max: usize, filled_bins: usize, text: &str, bins_min: Option<usize>) -> u8 {
    let kind = match bins_min {
        Some(bins_min) => Kind::in_every_script(keywords, short_max, filled_bins, &letters(text), bins_min),
        None => Kind::by_keywords(keywords, short_max),
    };
    kind as u8
}

fn text_of_letters(letters: &[char], (base, first, second): (u64, u64, u64)) -> TextOfLetters<'_> {
    TextOfLetters {
        letters,
        shingling: OfLetters::new(base, first, second),
    }
}

fn sketch_parts(py: Python<'_>, found: Sketch) -> SketchParts<'_> {
    let bytes = PyBytes::new(py, &found.bytes);
    (bytes, found.one_bits, found.bands, found.filled_bins)
}

fn found_parts<'py>(py: Python<'py>, text: &impl Shingled) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
    let mut finder = Finder::new(text.shingling());
    text.read(&mut finder);
    let found = finder.parts();
    (PyBytes::new(py, &found.anchors), PyBytes::new(py, &found.sample))
}

fn letters(text: &str) -> Vec<char> {
    text.chars().collect()
}

/// A hash or fingerprint as one number.
fn joined([first, second]: [u64; 2], bits: usize) -> u128 {
    if bits > 64 {
        u128::from(first) << 64 | u128::from(second)
    } else {
        u128::from(first)
    }
}

#[allow(clippy::cast_possible_truncation)] // cut into halves
const fn split(hash: u128, bits: usize) -> [u64; 2] {
    if bits > 64 {
        [(hash >> 64) as u64, hash as u64]
    } else {
        [hash as u64, 0]
    }
}
