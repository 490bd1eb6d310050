//! What is shown to people must not steer their terminal.

/// Fails on text with control characters.
#[track_caller]
pub(crate) fn assert_plain(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
