//! The engine as Python sees it: batches of texts in, bytes of arrays out.

use std::borrow::Cow;
use std::sync::Mutex;

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyString, PyTuple};

use super::known::PyKnownShingles;
use super::strings::text_of;
use crate::engine::{Engine, Fingerprint, Scratch};
use crate::known::KnownShingles;
use crate::lexicon::{Lexicon, OwnIdf};
use crate::scheme::{self, Parameters};
use crate::sketch::{Layout, OfLetters};

/// Words with their inverse document frequencies, and the median and mean.
type OwnTable = (Vec<(String, f64)>, f64, f64);

/// The words of a scheme: `own_words` with frequencies, and `own_idf` as words, weights, median, mean.
#[derive(FromPyObject)]
struct Vocabulary {
    own_words: Vec<(String, u64)>,
    stop_words: Vec<String>,
    own_idf: Option<OwnTable>,
}

/// The parameters of a scheme, and the requested results.
#[derive(FromPyObject)]
#[allow(clippy::struct_excessive_bools)] // each is a choice of its own
struct Wanted {
    keywords_max: Option<usize>,
    short_keywords_max: usize,
    bands: usize,
    band_minima: usize,
    facts: bool,
    slots: bool,
    sketched: bool,
    parts: bool,
    keywords_kept: Option<usize>,
    decorations: bool,
}

/// Computes fingerprints with one scheme. Threads may share it: it works without the interpreter lock.
#[pyclass(frozen, name = "Engine", module = "dupwatch_core")]
pub struct PyEngine {
    engine: Engine,
    /// Memory of calls that have ended.
    spare: Mutex<Vec<Scratch>>,
}

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // values are what comes from Python
impl PyEngine {
    /// Build the engine of the scheme with this name. Raises `ValueError` if there is none.
    ///
    /// `key` is the base of polynomials and the key of `SipHash`, for schemes that key their shingles.
    #[new]
    fn new(scheme: &str, wanted: Wanted, words: Vocabulary, key: (u64, u64, u64)) -> PyResult<Self> {
        let definition =
            scheme::definition(scheme).ok_or_else(|| PyValueError::new_err(format!("unknown scheme {scheme:?}")))?;
        let parameters = Parameters {
            keywords_max: wanted.keywords_max,
            short_keywords_max: wanted.short_keywords_max,
            layout: Layout::new(wanted.bands, wanted.band_minima)
                .ok_or_else(|| PyValueError::new_err("bands and one-bit minima need more minima than there are"))?,
            facts: wanted.facts,
            slots: wanted.slots,
            decorations: wanted.decorations,
            sketched: wanted.sketched,
            parts: wanted.parts,
            keywords_kept: wanted.keywords_kept,
        };
        let (base, first, second) = key;
        let shingling = OfLetters::new(base, first, second);
        let engine = Engine::new(definition, parameters, words.lexicon(), shingling);
        Ok(Self {
            engine,
            spare: Mutex::default(),
        })
    }

    /// Return the fingerprints of texts that declare these languages, "" for none, and their `known` shingles.
    ///
    /// Returns one entry for each field of `consumer.fingerprint.Fingerprints`, in its order; arrays are bytes of
    /// little-endian numbers. Raises `ValueError` if the weights of a text add up to 2**32 or more.
    fn fingerprint<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Bound<'py, PyString>>,
        languages: Vec<String>,
        known: Option<Bound<'py, PyKnownShingles>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let written = declaring(&texts, &languages)?;
        let known = known.map(|known| known.get().shared());
        let found = py.detach(|| self.all(&written, &languages, known.as_deref()))?;
        self.arrays(py, &found, known.is_some())
    }

    /// Return for each text the packed smallest hashes of its shingles; texts and languages are as above.
    fn smallest_shingles<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Bound<'py, PyString>>,
        languages: Vec<String>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let written = declaring(&texts, &languages)?;
        let found: Vec<_> = py.detach(|| {
            let texts = written.iter().zip(&languages);
            texts
                .map(|(text, language)| self.engine.smallest_shingles(text, language))
                .collect()
        });
        PyTuple::new(py, found.iter().map(|hashes| PyBytes::new(py, hashes)))
    }
}

impl PyEngine {
    fn all(
        &self,
        texts: &[Cow<'_, str>],
        languages: &[String],
        known: Option<&KnownShingles>,
    ) -> PyResult<Vec<Fingerprint>> {
        let mut scratch = self
            .spare
            .lock()
            .ok()
            .and_then(|mut spare| spare.pop())
            .unwrap_or_default();
        let found = texts
            .iter()
            .zip(languages)
            .map(|(text, language)| self.engine.fingerprint(text, language, known, &mut scratch))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| PyValueError::new_err(error.to_string()));
        if let Ok(mut spare) = self.spare.lock() {
            spare.push(scratch);
        }
        found
    }

    fn arrays<'py>(&self, py: Python<'py>, found: &[Fingerprint], with_known: bool) -> PyResult<Bound<'py, PyTuple>> {
        let words = self.engine.definition().hashing.bits() / 64;
        let folds = self.engine.definition().every_script();
        let numbers =
            |all: &mut dyn Iterator<Item = u64>| PyBytes::new(py, &all.flat_map(u64::to_le_bytes).collect::<Vec<_>>());
        let keywords = found
            .iter()
            .map(|each| keywords(py, each))
            .collect::<PyResult<Vec<_>>>()?;
        let parameters = self.engine.parameters();
        let facts = packed(py, found, parameters.facts || parameters.slots, |each| &each.facts)?;
        let anchors = packed(py, found, parameters.parts, |each| &each.parts.anchors)?;
        let samples = packed(py, found, parameters.parts, |each| &each.parts.sample)?;
        let known_shingles = packed(py, found, with_known, |each| &each.known_shingles)?;
        let mut counts = Vec::with_capacity(found.len());
        for each in found {
            counts.push(u64::try_from(each.keyword_count).map_err(|_| PyOverflowError::new_err("too many keywords"))?);
        }
        let sketches: Vec<u8> = found
            .iter()
            .flat_map(|each| each.sketch.bytes.iter().copied())
            .collect();
        PyTuple::new(
            py,
            [
                numbers(&mut found.iter().flat_map(|each| each.code[..words].iter().copied())).into_any(),
                PyBytes::new(py, &sketches).into_any(),
                numbers(&mut found.iter().map(|each| each.sketch.one_bits)).into_any(),
                numbers(&mut found.iter().flat_map(|each| each.sketch.bands.iter().copied())).into_any(),
                PyTuple::new(py, keywords)?.into_any(),
                PyBytes::new(py, &found.iter().map(|each| each.kind as u8).collect::<Vec<_>>()).into_any(),
                PyBytes::new(py, &found.iter().flat_map(|each| each.text_digest).collect::<Vec<_>>()).into_any(),
                numbers(&mut counts.into_iter()).into_any(),
                facts.into_any(),
                if folds {
                    let digests: Vec<u8> = found.iter().flat_map(|each| each.written_digest).collect();
                    PyBytes::new(py, &digests).into_any()
                } else {
                    py.None().into_bound(py)
                },
                anchors.into_any(),
                samples.into_any(),
                known_shingles.into_any(),
            ],
        )
    }
}

impl Vocabulary {
    fn lexicon(self) -> Lexicon {
        let own_words: Vec<_> = self
            .own_words
            .into_iter()
            .map(|(word, frequency)| (word.chars().collect(), frequency))
            .collect();
        let stop_words = self.stop_words.iter().map(|word| word.chars().collect()).collect();
        let own_idf = self.own_idf.map(|(weights, median, mean)| OwnIdf {
            weights: weights
                .into_iter()
                .map(|(word, weight)| (word.chars().collect(), weight))
                .collect(),
            median,
            mean,
        });
        Lexicon::new(&own_words, stop_words, own_idf)
    }
}

/// The texts, if there are as many languages.
fn declaring<'a>(texts: &'a [Bound<'_, PyString>], languages: &[String]) -> PyResult<Vec<Cow<'a, str>>> {
    if texts.len() != languages.len() {
        return Err(PyValueError::new_err("there must be as many languages as texts"));
    }
    texts.iter().map(text_of).collect()
}

/// One field of all texts, empty unless requested.
fn packed<'py>(
    py: Python<'py>,
    found: &[Fingerprint],
    is_wanted: bool,
    field: impl Fn(&Fingerprint) -> &[u8],
) -> PyResult<Bound<'py, PyTuple>> {
    let wanted = if is_wanted { found } else { &[] };
    PyTuple::new(py, wanted.iter().map(|each| PyBytes::new(py, field(each))))
}

fn keywords<'py>(py: Python<'py>, found: &Fingerprint) -> PyResult<Bound<'py, PyTuple>> {
    let pairs = found
        .keywords
        .iter()
        .map(|(word, weight)| {
            PyTuple::new(
                py,
                [PyString::new(py, word).into_any(), PyFloat::new(py, *weight).into_any()],
            )
        })
        .collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, pairs)
}
