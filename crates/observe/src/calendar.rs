//! Unix seconds as people and logs write them, always in UTC.

/// One second of the calendar, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    year: i64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

const DAY: u64 = 86_400;

impl Calendar {
    /// The calendar at `unix` seconds.
    pub fn of(unix: u64) -> Self {
        let (year, month, day) = civil_from_days((unix / DAY) as i64);
        Self {
            year,
            month,
            day,
            hour: unix % DAY / 3600,
            minute: unix % 3600 / 60,
            second: unix % 60,
        }
    }

    /// `21/Nov/2026:03:40:02 +0000`, as access logs have it.
    pub fn log_time(&self) -> String {
        format!(
            "{:02}/{}/{:04}:{} +0000",
            self.day,
            MONTHS[(self.month - 1) as usize],
            self.year,
            self.clock()
        )
    }

    /// `2026-11-21T03:40:02Z` (RFC 3339).
    pub fn rfc3339(&self) -> String {
        format!(
            "{:04}-{:02}-{:02}T{}Z",
            self.year,
            self.month,
            self.day,
            self.clock()
        )
    }

    /// `03:40:02`.
    pub fn clock(&self) -> String {
        format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second)
    }

    /// The Unix second of a text as [`Calendar::log_time`] writes it; none where it is not one.
    pub fn parse_log_time(text: &str) -> Option<u64> {
        let (date, zone) = text.split_once(' ')?;
        if zone != "+0000" || date.len() != 20 || !date.is_ascii() {
            return None;
        }
        let month = Self::month_of(&date[3..6])?;
        let marks = [
            &date[2..3],
            &date[6..7],
            &date[11..12],
            &date[14..15],
            &date[17..18],
        ];
        if marks != ["/", "/", ":", ":", ":"] {
            return None;
        }
        let (day, year) = (number(&date[0..2])?, number(&date[7..11])?);
        let (hour, minute, second) = (
            number(&date[12..14])?,
            number(&date[15..17])?,
            number(&date[18..20])?,
        );
        let date = [year, month, day];
        Self::unix_of(date, [hour, minute, second])
    }

    /// The month that logs call so, 1 to 12.
    pub fn month_of(name: &str) -> Option<u64> {
        let place = MONTHS.iter().position(|month| *month == name)?;
        Some(place as u64 + 1)
    }

    /// The Unix second of year, month and day with hour, minute and second, all in UTC; none where
    /// there is no such second, or it is before 1970.
    pub fn unix_of(date: [u64; 3], clock: [u64; 3]) -> Option<u64> {
        let [year, month, day] = date;
        let [hour, minute, second] = clock;
        if year > 9999 || !(1..=12).contains(&month) || day > 31 {
            return None;
        }
        let days = u64::try_from(days_from_civil(year as i64, month, day)).ok()?;
        let calendar = Self {
            year: year as i64,
            month,
            day,
            hour,
            minute,
            second,
        };
        let unix = days * DAY + hour.min(99) * 3600 + minute.min(99) * 60 + second.min(99);
        // A date such as 31 February comes back as another day: refuse it.
        (Self::of(unix) == calendar).then_some(unix)
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Days since 1970 to year, month and day (Howard Hinnant, "chrono-compatible low-level date
/// algorithms"): years begin in March, so that the leap day is the last of its year.
fn civil_from_days(days: i64) -> (i64, u64, u64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u64, day as u64)
}

/// The reverse of [`civil_from_days`].
fn days_from_civil(year: i64, month: u64, day: u64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = (month as i64 + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day as i64 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_seconds_have_known_names() {
        assert_eq!(Calendar::of(0).rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(Calendar::of(951_782_399).rfc3339(), "2000-02-28T23:59:59Z");
        assert_eq!(Calendar::of(951_782_400).rfc3339(), "2000-02-29T00:00:00Z");
        assert_eq!(
            Calendar::of(1_795_232_402).log_time(),
            "21/Nov/2026:03:40:02 +0000"
        );
    }

    #[test]
    fn log_times_are_read_back_and_false_ones_refused() {
        for unix in [0, 951_782_400, 1_795_232_402, 4_102_444_799] {
            let text = Calendar::of(unix).log_time();
            assert_eq!(Calendar::parse_log_time(&text), Some(unix));
        }
        for bad in [
            "",
            "31/Feb/2026:00:00:00 +0000",
            "21/Nov/2026:24:00:00 +0000",
            "21/Nov/2026:03:00:02 +0100",
            "21/Nov/2026 03:00:02 +0000",
            "21/Nov/+026:03:00:02 +0000",
            "ää/Nov/2026:03:00:0 +0000",
        ] {
            assert_eq!(Calendar::parse_log_time(bad), None, "{bad}");
        }
    }
}
