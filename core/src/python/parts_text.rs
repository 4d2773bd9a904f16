//! Single steps on texts, for tests.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::strings::text_of;
use crate::letters::Tables;
use crate::normalise::Normalised;
use crate::{equality, letters, normalise, simplified, unicode};

/// Add the functions of this part.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("UNICODE_VERSION", unicode::UNICODE_VERSION)?;
    module.add("CHINESE_DIGEST", PyBytes::new(module.py(), &simplified::digest()))?;
    module.add("LETTERS_DIGEST", PyBytes::new(module.py(), &letters::digest()))?;
    module.add(
        "DECORATIONS_DIGEST",
        PyBytes::new(module.py(), &letters::decorations_digest()),
    )?;
    module.add_function(wrap_pyfunction!(normalise_text, module)?)?;
    module.add_function(wrap_pyfunction!(equality_forms, module)?)?;
    module.add_function(wrap_pyfunction!(letters_of, module)?)?;
    module.add_function(wrap_pyfunction!(without_surrogates, module)?)?;
    module.add_function(wrap_pyfunction!(fold, module)?)?;
    module.add_function(wrap_pyfunction!(classes, module)?)?;
    module.add_function(wrap_pyfunction!(lower, module)?)?;
    module.add_function(wrap_pyfunction!(stripped_len, module)?)
}

/// `consumer.fingerprint.characters.normalise.normalise`.
#[pyfunction]
#[pyo3(name = "normalise")]
fn normalise_text(text: &Bound<'_, PyString>) -> PyResult<String> {
    Ok(normalise::normalise(&text_of(text)?).into_iter().collect())
}

/// `consumer.fingerprint.characters.normalise.without_surrogates`.
#[pyfunction]
fn without_surrogates(text: &Bound<'_, PyString>) -> PyResult<String> {
    Ok(normalise::as_written(&text_of(text)?).into_iter().collect())
}

/// Fold a normalised text to simplified Chinese, as `ChineseTables.fold`.
#[pyfunction]
fn fold(text: &str) -> String {
    let text: Vec<char> = text.chars().collect();
    simplified::fold(&text).unwrap_or(text).into_iter().collect()
}

/// The two forms of `consumer.fingerprint.characters.equality.equality_forms`, of one text.
#[pyfunction]
fn equality_forms(text: &Bound<'_, PyString>) -> PyResult<(String, String)> {
    let text = text_of(text)?;
    let normalised = Normalised::of(&text);
    let seen = Tables::get().seen(&normalised.form);
    let forms = equality::forms(&text, &normalised, seen);
    Ok((forms.read.iter().collect(), forms.compared().iter().collect()))
}

/// `consumer.fingerprint.characters.letters.letters_of`, of one text.
#[pyfunction]
fn letters_of(text: &Bound<'_, PyString>, without_decorations: bool) -> PyResult<String> {
    let text = text_of(text)?;
    let normalised = normalise::normalise(&text);
    Ok(letters::letters(&text, &normalised, without_decorations)
        .letters
        .into_iter()
        .collect())
}

/// The classes of a code point, as bits; a surrogate is in none.
#[pyfunction]
fn classes(code_point: u32) -> u8 {
    char::from_u32(code_point).map_or(0, unicode::classes)
}

/// `str.lower`.
#[pyfunction]
fn lower(word: &str) -> String {
    let word: Vec<char> = word.chars().collect();
    unicode::lower(&word).iter().collect()
}

/// `len(word.strip())`.
#[pyfunction]
fn stripped_len(word: &str) -> usize {
    let word: Vec<char> = word.chars().collect();
    unicode::stripped_len(&word)
}
