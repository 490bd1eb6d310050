//! Programs that ask a daemon for containers or units, by name: data, in
//! `signatures/requesters.toml`.

use serde::Deserialize;

const FILE: &str = include_str!("../../../../signatures/requesters.toml");

/// The part of that file that matters here.
#[derive(Deserialize)]
struct File {
    client: Vec<String>,
}

/// Their names, as processes have them.
pub(super) fn known() -> Result<Vec<String>, String> {
    let file: File = toml::from_str(FILE).map_err(|error| error.to_string())?;
    Ok(file.client)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many as the program in the kernel compares with, and none that it would see cut.
    #[test]
    fn all_of_them_fit() {
        let clients = known().expect("the file is well");
        assert!((1..=16).contains(&clients.len()), "{clients:?}");
        assert!(clients.iter().all(|name| (1..=15).contains(&name.len())));
    }
}
