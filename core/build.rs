//! Prepares jieba's words and model for `src/words/embedded.rs`: they are read, sorted and packed once, at build time.

#[path = "build/averages.rs"]
mod averages;
#[path = "build/jieba.rs"]
mod jieba;
#[path = "src/words/layout.rs"]
mod layout;
#[path = "build/literal.rs"]
mod literal;
#[path = "build/packed.rs"]
mod packed;
#[path = "build/trie.rs"]
mod trie;

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=src/words/layout.rs");
    let package = jieba::Package::read(&jieba::folder());
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("words.bin"), packed::packed(&package)).expect("OUT_DIR can be written to");
}
