//! The Python module: the engine, and single steps for tests.

use pyo3::prelude::*;

mod engine;
mod known;
mod parts_sketch;
mod parts_text;
mod parts_words;
mod strings;

/// The revision of the interface with `consumer.fingerprint.compiled`.
const REVISION: u32 = 7;

#[pymodule]
fn dupwatch_core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("REVISION", REVISION)?;
    module.add_class::<engine::PyEngine>()?;
    module.add_class::<known::PyKnownShingles>()?;
    parts_text::add_to(module)?;
    parts_words::add_to(module)?;
    parts_sketch::add_to(module)?;
    Ok(())
}
