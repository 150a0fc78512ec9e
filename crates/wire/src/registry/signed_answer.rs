//! The signature of a registry over its answer, at the end of the last line: ` key=… sig=…`.
//!
//! It covers every line of the answer as it was sent, numbers and all, so nothing can be left out,
//! added or put in another order.

use super::ProofWord;

/// Puts the signature at the end of an encoded answer. `sign` gives key and signature over a text:
/// the lines, a line end between them.
pub fn sign_answer(answer: &mut Vec<u8>, sign: impl FnOnce(&str) -> (ProofWord, ProofWord)) {
    while answer.last() == Some(&b'\n') {
        answer.pop();
    }
    // What we have encoded ourselves is plain text.
    let (key, signature) = sign(&String::from_utf8_lossy(answer));
    answer.extend_from_slice(format!(" key={key} sig={signature}\n").as_bytes());
}

/// The last line of an answer without its signature, and key and signature.
pub fn split_answer(line: &str) -> Option<(&str, (ProofWord, ProofWord))> {
    let (covered, rest) = line.rsplit_once(" key=")?;
    let (key, signature) = rest.split_once(" sig=")?;
    Some((covered, (key.parse().ok()?, signature.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_what_is_read() {
        let mut answer = b"2 210 ENTRY x\n2 200 OK 1\n".to_vec();
        let mut covered = String::new();
        sign_answer(&mut answer, |text| {
            covered = text.to_owned();
            ("k".parse().expect("a word"), "s".parse().expect("a word"))
        });
        assert_eq!(answer, b"2 210 ENTRY x\n2 200 OK 1 key=k sig=s\n");
        assert_eq!(covered, "2 210 ENTRY x\n2 200 OK 1");
        let (last, (key, signature)) = split_answer("2 200 OK 1 key=k sig=s").expect("signed");
        assert_eq!(
            (last, key.as_str(), signature.as_str()),
            ("2 200 OK 1", "k", "s")
        );
        assert_eq!(split_answer("2 200 OK 1"), None);
    }
}
