//! Contents of long pages.

/// Pages with more lines than this begin with their contents.
const LONG: usize = 200;

/// Returns a long page with its contents below its title; any other as it is.
pub fn with_contents(page: &str) -> String {
    let (title, rest) = page.split_once("\n\n").unwrap_or((page, ""));
    let rest = match rest.split_once("\n\n") {
        Some((contents, rest)) if is_contents(contents) => rest,
        _ => rest,
    };
    if page.lines().count() <= LONG {
        return page.to_owned();
    }
    let links: Vec<String> = headings(rest)
        .filter_map(|heading| heading.strip_prefix("## "))
        .map(|heading| format!("[{heading}](#{})", anchor(heading)))
        .collect();
    format!("{title}\n\n{}\n\n{rest}", links.join(" ·\n"))
}

fn is_contents(paragraph: &str) -> bool {
    let mut lines = paragraph.lines();
    lines.all(|line| line.starts_with('[') && line.contains("](#"))
}

/// Lines of a page that are headings, with their signs.
pub fn headings(page: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    page.lines().filter(move |line| {
        in_code ^= line.starts_with("```");
        line.starts_with('#') && !in_code
    })
}

/// Anchor that Git hosts and mdBook give a heading, which may have its signs.
pub fn anchor(heading: &str) -> String {
    let kept = heading
        .trim_start_matches('#')
        .trim_start()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
