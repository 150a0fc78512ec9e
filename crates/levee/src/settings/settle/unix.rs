//! Sockets in the file system: who may connect to them.

use super::values::Values;
use crate::settings::read::Complaint;

/// The bits of `site.unix_mode`, written in octal digits as chmod(1) takes them.
pub(super) fn mode(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> u32 {
    let text = values.text("site.unix_mode");
    match u32::from_str_radix(&text, 8) {
        Ok(mode) if mode <= 0o777 => mode,
        Ok(_) | Err(_) => {
            complaints.push(Complaint {
                line: values.file.line("site.unix_mode"),
                text: format!(
                    "site.unix_mode: `{text}` is no mode of three octal digits such as \"660\""
                ),
            });
            0o600
        }
    }
}
