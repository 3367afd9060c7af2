//! The last line of dumps of ours in forms that have no end: by it one that was cut off is known, at whatever byte.

use super::FormatError;

/// That line; other programs take it for a comment.
pub(super) const END: &str = "# end";

/// Whether a dump is of ours, which begin with `head`.
///
/// # Errors
/// It is, and was cut off.
pub(super) fn is_ours(file: &str, text: &str, head: &str) -> Result<bool, FormatError> {
    let ours = text.starts_with(head);
    if ours && text.lines().last() != Some(END) {
        let expected = format!("`{END}` as the last line");
        return Err(FormatError::file(file, "the dump ends too soon", expected));
    }
    Ok(ours)
}
