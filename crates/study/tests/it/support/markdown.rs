//! Blocks of code in Markdown.

/// A block of code.
#[derive(Debug)]
pub struct Block {
    /// Line of its fence, or of its first line where it is indented; from 1.
    pub line: usize,
    /// What stands behind the fence; nothing where it is indented.
    pub info: String,
    /// Its text, without the indentation that makes it a block.
    pub text: String,
    /// The comment on the line before it.
    pub comment: Option<String>,
}

/// All blocks of a page, fenced and indented.
pub fn blocks(page: &str) -> Vec<Block> {
    let lines: Vec<&str> = page.lines().collect();
    let mut blocks = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let start = at;
        let mut block = Vec::new();
        let mut info = "";
        if let Some(behind) = line.strip_prefix("```") {
            info = behind.trim();
            at += 1;
            block.extend(
                lines[at..]
                    .iter()
                    .take_while(|line| !line.starts_with("```")),
            );
            at += block.len() + 1;
        } else if line.starts_with("    ") && (at == 0 || lines[at - 1].trim().is_empty()) {
            let is_inside = |line: &&&str| line.starts_with("    ") || line.trim().is_empty();
            let inside = lines[at..].iter().take_while(is_inside);
            block.extend(inside.map(|line| line.get(4..).unwrap_or_default()));
            at += block.len();
        } else {
            at += 1;
            continue;
        }
        let before = start.checked_sub(1).map_or("", |before| lines[before]);
        let comment = before
            .strip_prefix("<!--")
            .and_then(|c| c.strip_suffix("-->"));
        blocks.push(Block {
            line: start + 1,
            info: info.to_owned(),
            text: block.join("\n") + "\n",
            comment: comment.map(|comment| comment.trim().to_owned()),
        });
    }
    blocks
}
