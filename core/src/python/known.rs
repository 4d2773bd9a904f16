//! Sets of known shingles, as Python builds them.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::known::{HeldHashes, KnownShingles, NotAscending};

/// An immutable set of shingle hashes. Threads may share it.
#[pyclass(frozen, name = "KnownShingles", module = "dupwatch_core")]
pub struct PyKnownShingles(Arc<KnownShingles>);

#[pymethods]
impl PyKnownShingles {
    /// Build the set from parts of little-endian numbers of 8 bytes, each of which ascends; duplicates count once. The
    /// set keeps references to the parts.
    ///
    /// Raises `ValueError` for a part that does not ascend or whose number of bytes is not a multiple of 8.
    #[new]
    fn new(py: Python<'_>, parts: Vec<PyBackedBytes>) -> PyResult<Self> {
        let parts = parts.into_iter().map(|part| Box::new(part) as HeldHashes).collect();
        match py.detach(|| KnownShingles::new(parts)) {
            Ok(known) => Ok(Self(Arc::new(known))),
            Err(NotAscending) => Err(PyValueError::new_err("hashes have 8 bytes each, and ascend")),
        }
    }
}

impl PyKnownShingles {
    /// The set, for work without the interpreter lock.
    pub(super) fn shared(&self) -> Arc<KnownShingles> {
        Arc::clone(&self.0)
    }
}
