//! Words: single steps for tests, and what the module was built with.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::strings::text_of;
use crate::words::{Cutter, Scratch, WordId, Words};

/// Add the functions of this part.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let words = Words::embedded();
    module.add("JIEBA_DIGEST", PyBytes::new(module.py(), words.digest()))?;
    module.add("MEDIAN_IDF", words.median())?;
    module.add("MEAN_IDF", words.mean())?;
    module.add_function(wrap_pyfunction!(cut, module)?)?;
    module.add_function(wrap_pyfunction!(cut_numbered, module)?)?;
    module.add_function(wrap_pyfunction!(number, module)?)?;
    module.add_function(wrap_pyfunction!(idf, module)?)
}

/// Return the words of a text in order. Own words come with their frequencies, of at least 1.
#[pyfunction]
#[pyo3(signature = (text, own_words = Vec::new()))]
fn cut(text: &Bound<'_, PyString>, own_words: Vec<(String, u64)>) -> PyResult<Vec<String>> {
    Ok(cut_numbered(text, own_words)?
        .into_iter()
        .map(|(word, _)| word)
        .collect())
}

/// Return the words of a text in order, each with the number that comes with it.
#[pyfunction]
#[pyo3(signature = (text, own_words = Vec::new()))]
fn cut_numbered(text: &Bound<'_, PyString>, own_words: Vec<(String, u64)>) -> PyResult<Vec<(String, Option<u32>)>> {
    if own_words.iter().any(|&(_, frequency)| frequency == 0) {
        return Err(PyValueError::new_err("the frequency of an own word is at least 1"));
    }
    let own: Vec<_> = own_words
        .into_iter()
        .map(|(word, frequency)| (word.chars().collect(), frequency))
        .collect();
    let letters: Vec<char> = text_of(text)?.chars().collect();
    let mut words = Vec::new();
    Cutter::new(&own).cut(&letters, &mut Scratch::default(), |range, id| {
        words.push((letters[range].iter().collect(), id.map(WordId::number)));
    });
    Ok(words)
}

/// Return the number of a word that jieba's dictionary or IDF table has, else None.
#[pyfunction]
fn number(word: &str) -> Option<u32> {
    let letters: Vec<char> = word.chars().collect();
    Words::embedded().find(&letters).map(WordId::number)
}

/// Return the IDF of a word, None if the table does not have it.
#[pyfunction]
fn idf(word: &str) -> Option<f64> {
    let letters: Vec<char> = word.chars().collect();
    Words::embedded()
        .find(&letters)
        .and_then(|known| Words::embedded().idf(known))
}
