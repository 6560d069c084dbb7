//! The bytes of a file, as base64 wherever they are written down.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use sha2::{Digest, Sha256};

/// Bytes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Content(pub Vec<u8>);

impl Content {
    /// For a script or a journal.
    pub fn encoded(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// From what `base64` printed.
    pub fn decoded(text: &str) -> Option<Content> {
        STANDARD.decode(text).ok().map(Content)
    }

    /// SHA-256 in hexadecimal, as `sha256sum` prints it.
    pub fn hash(&self) -> String {
        Sha256::digest(&self.0).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The text, when it is one.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Content {
        Content(text.as_bytes().to_vec())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content(text.into_bytes())
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.encoded())
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Content, D::Error> {
        let text = String::deserialize(from)?;
        Content::decoded(&text).ok_or_else(|| D::Error::custom("this is no base64"))
    }
}
