//! The bytes of a file, written as base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use sha2::{Digest, Sha256};

/// Bytes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileContent(pub Vec<u8>);

impl FileContent {
    /// Encodes the bytes for a script or a journal.
    pub fn encoded(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Decodes the output of `base64`.
    pub fn decoded(text: &str) -> Option<FileContent> {
        STANDARD.decode(text).ok().map(FileContent)
    }

    /// Returns the SHA-256 in hexadecimal, as `sha256sum` prints it.
    pub fn hash(&self) -> String {
        Sha256::digest(&self.0).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the text, if the bytes are UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl From<&str> for FileContent {
    fn from(text: &str) -> FileContent {
        FileContent(text.as_bytes().to_vec())
    }
}

impl From<String> for FileContent {
    fn from(text: String) -> FileContent {
        FileContent(text.into_bytes())
    }
}

impl Serialize for FileContent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.encoded())
    }
}

impl<'de> Deserialize<'de> for FileContent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<FileContent, D::Error> {
        let text = String::deserialize(from)?;
        FileContent::decoded(&text).ok_or_else(|| D::Error::custom("this is not base64"))
    }
}
