//! Converts Python strings to Rust strings.

use std::borrow::Cow;

use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// The text with surrogate pairs as the character that they encode, and lone surrogates as U+FFFD:
/// `without_surrogates` of `consumer/fingerprint/characters/normalise.py`.
///
/// A text without surrogates is not copied: Python keeps its UTF-8 with it.
pub(super) fn text_of<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, str>> {
    match text.to_str() {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(text.py()) => {
            let encoded = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
            let units = encoded.cast::<PyBytes>()?.as_bytes();
            let units = units.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
            let characters = char::decode_utf16(units);
            Ok(Cow::Owned(
                characters
                    .map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect(),
            ))
        }
        Err(error) => Err(error),
    }
}
