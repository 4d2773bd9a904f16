//! Sets of known shingles, as Python builds them.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::known::KnownShingles;

/// An immutable set of shingle hashes. Threads may share it.
#[pyclass(frozen, name = "KnownShingles", module = "dupwatch_core")]
pub struct PyKnownShingles(Arc<KnownShingles>);

#[pymethods]
impl PyKnownShingles {
    /// Build the set from little-endian numbers of 8 bytes, in any order; duplicates count once.
    ///
    /// Raises `ValueError` if the number of bytes is not a multiple of 8.
    #[new]
    fn new(hashes: &Bound<'_, PyBytes>) -> PyResult<Self> {
        let (numbers, rest) = hashes.as_bytes().as_chunks();
        if !rest.is_empty() {
            return Err(PyValueError::new_err("a hash has 8 bytes"));
        }
        let numbers = numbers.iter().map(|&number| u64::from_le_bytes(number)).collect();
        Ok(Self(Arc::new(hashes.py().detach(|| KnownShingles::new(numbers)))))
    }

    /// The number of distinct hashes.
    fn __len__(&self) -> usize {
        self.0.len()
    }
}

impl PyKnownShingles {
    /// The set, for work without the interpreter lock.
    pub(super) fn shared(&self) -> Arc<KnownShingles> {
        Arc::clone(&self.0)
    }
}
