//! Asks the user, and makes the consent without which nothing is changed.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Result, bail};
use sexton_remedy::Consent;

/// Asks once, on a terminal, unless `--yes` was given; `None` when the answer is no. Without a
/// terminal and without `--yes` there is no answer, which is an error.
pub fn ask(yes: bool, what: &str) -> Result<Option<Consent>> {
    if yes {
        return Ok(Some(Consent::given_by_the_user()));
    }
    let mut err = io::stderr().lock();
    if !io::stdin().is_terminal() || !err.is_terminal() {
        bail!("cannot ask whether to {what}: there is no terminal; add --yes to do it unasked");
    }
    write!(err, "\nDo you want to {what}? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let is_yes = ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str());
    Ok(is_yes.then(Consent::given_by_the_user))
}

/// The same for what has nothing else to do.
pub fn ask_or_end(yes: bool, what: &str) -> Result<Consent> {
    match ask(yes, what)? {
        Some(consent) => Ok(consent),
        None => bail!("nothing was changed"),
    }
}
