//! What the kernel puts in front of a line about a device.

/// `ena 0000:00:05.0 ens5: ` in front of `rest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix<'t> {
    /// The driver's name.
    pub(super) driver: &'t [u8],
    /// The device's address on its bus.
    pub(super) bus: &'t [u8],
    /// The interface's name, if the line is about one that has a name.
    pub(super) device: Option<&'t [u8]>,
    /// What the driver says.
    pub(super) rest: &'t [u8],
}

impl<'t> Prefix<'t> {
    /// The prefix of a line, if it may have one.
    ///
    /// Behind the interface the kernel may put its state, as in `(unregistering)`; one
    /// without a name is `(unnamed net_device)`.
    pub(super) fn of(text: &'t [u8]) -> Option<Self> {
        let end = text.windows(2).position(|pair| pair == b": ")?;
        let mut words = text[..end].split(|&byte| byte == b' ');
        let driver = words.next()?;
        let bus = words.next()?;
        let device = words.next().filter(|word| !word.starts_with(b"("));
        let state = words.next().filter(|_| device.is_some());
        let plain = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_graphic);
        let fits = plain(driver)
            && plain(bus)
            && device.is_none_or(plain)
            && state.is_none_or(|word| word.starts_with(b"("));
        fits.then_some(Self {
            driver,
            bus,
            device,
            rest: &text[end + 2..],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, &str, Option<&str>, &str)>) {
        let found = Prefix::of(text.as_bytes())
            .map(|prefix| (prefix.driver, prefix.bus, prefix.device, prefix.rest));
        let expected = expected.map(|(driver, bus, device, rest)| {
            (
                driver.as_bytes(),
                bus.as_bytes(),
                device.map(str::as_bytes),
                rest.as_bytes(),
            )
        });
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn prefixes_are_told_apart() {
        check(
            "ena 0000:00:05.0 ens5: TX q 1: x",
            Some(("ena", "0000:00:05.0", Some("ens5"), "TX q 1: x")),
        );
        check(
            "gve 0000:00:04.0: x",
            Some(("gve", "0000:00:04.0", None, "x")),
        );
        check(
            "ena 0000:00:05.0 ens5 (unregistering): x",
            Some(("ena", "0000:00:05.0", Some("ens5"), "x")),
        );
        check(
            "ena 0000:00:05.0 (unnamed net_device) (uninitialized): x",
            Some(("ena", "0000:00:05.0", None, "x")),
        );
        check("systemd[1]: Started.", None);
        check("a b c d e: x", None);
        check("a  c: x", None);
        check("ena 0000:00:05.0 ens5", None);
        check("", None);
    }
}
