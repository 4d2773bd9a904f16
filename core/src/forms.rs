//! The forms of a text from which a scheme computes: one for each use.

use std::borrow::Cow;

use crate::normalise::{Normalised, as_written};
use crate::scheme::{Definition, Parameters, Reading};
use crate::{equality, letters, simplified};

/// The forms of a text. In older schemes all are the normalised text, which is stored once.
#[derive(Debug)]
pub struct Forms {
    written: Vec<char>,
    words: Option<Vec<char>>,
    text: Option<Vec<char>>,
    compared: Option<Vec<char>>,
    shingled: Option<Vec<char>>,
}

impl Forms {
    /// The forms of a text without surrogates.
    #[must_use]
    pub fn of(text: &str, definition: &Definition, parameters: &Parameters) -> Self {
        let normalised = Normalised::of(text);
        if definition.compares_letters() {
            return Self::of_letters(text, normalised, parameters);
        }
        let written = normalised.form;
        Self {
            text: definition.every_script().then(|| simplified::fold(&written)).flatten(),
            words: (definition.reading == Reading::AsWritten).then(|| as_written(text)),
            written,
            compared: None,
            shingled: None,
        }
    }

    fn of_letters(text: &str, normalised: Normalised, parameters: &Parameters) -> Self {
        let letters::Found { letters, seen } = letters::letters(text, &normalised.form, parameters.decorations);
        let equality::Forms { read, compact } = equality::forms(text, &normalised, seen);
        // Most texts do not change, and comparing is cheaper than a second digest.
        let read = match read {
            Cow::Owned(read) if read != normalised.form => Some(read),
            _ => None,
        };
        Self {
            shingled: Some(letters),
            compared: compact,
            text: read,
            written: normalised.form,
            words: None,
        }
    }

    /// The normalised text, for references.
    #[must_use]
    pub fn written(&self) -> &[char] {
        &self.written
    }

    /// The form for splitting into words.
    #[must_use]
    pub fn words(&self) -> &[char] {
        self.words.as_deref().unwrap_or_else(|| self.text())
    }

    /// The form for facts and evidence; a text counts as empty if this is.
    #[must_use]
    pub fn text(&self) -> &[char] {
        self.text.as_deref().unwrap_or(&self.written)
    }

    /// The form for the text digest, `None` if it is the normalised text.
    #[must_use]
    pub fn compared(&self) -> Option<&[char]> {
        self.compared.as_deref().or(self.text.as_deref())
    }

    /// The form for shingles.
    #[must_use]
    pub fn shingled(&self) -> &[char] {
        self.shingled.as_deref().unwrap_or_else(|| self.text())
    }
}
