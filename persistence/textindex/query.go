package textindex

import (
	"context"
	"database/sql"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Query is what to look for: words and phrases, which a text must all have.
type Query struct{ terms []string }

// Parse reads a query. A word in it stands for all words that begin with it. Text in double quotes
// is a phrase; a quote that is not closed ends with the text. Case, accents and punctuation do not
// matter. A query without a letter or digit is empty.
func Parse(text string) Query {
	var q Query
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 {
			q.add(part, "")
			continue
		}
		for word := range strings.FieldsSeq(part) {
			q.add(word, "*")
		}
	}
	return q
}

// add adds a word or a phrase, unless it has nothing that the index has.
func (q *Query) add(text, suffix string) {
	indexed := func(r rune) bool {
		return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r))
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	if strings.ContainsFunc(text, indexed) {
		q.terms = append(q.terms, `"`+text+`"`+suffix)
	}
}

// Empty reports whether there is nothing to look for.
func (q Query) Empty() bool { return len(q.terms) == 0 }

// match returns the query in the syntax of FTS5.
func (q Query) match() string { return strings.Join(q.terms, " AND ") }

// matchIn is match for messages, those of a directory if cwd is not empty.
func (q Query) matchIn(cwd string) string {
	text := `text : (` + q.match() + `)`
	if cwd == "" {
		return text
	}
	return `workspace : "` + workspace(cwd) + `" AND ` + text
}

// Hit is a message or a title that has all terms of a query. Number identifies it: messages and
// titles are numbered apart, newer ones higher.
type Hit struct {
	Number             int64
	Branch, Generation int64 // of a message
	Agent              bool
}

// Queries for hits. FTS5 finds them in the order of their numbers, so a page costs no sort.
const (
	findMessages = `
SELECT m.message, m.place, m.agent
FROM message_text t CROSS JOIN messages m ON m.message = t.rowid
WHERE message_text MATCH ? AND t.rowid < ?
ORDER BY t.rowid DESC
LIMIT ?`
	findTitles = `
SELECT rowid
FROM titles
WHERE titles MATCH ? AND rowid < ?
ORDER BY rowid DESC
LIMIT ?`
	messageSnippet = `
SELECT snippet(message_text, 0, '', '', '…', 24)
FROM message_text
WHERE message_text MATCH ? AND rowid = ?`
)

// FindMessages reads up to limit messages with a number below before, newest first. An empty cwd
// selects all directories.
func (x *Index) FindMessages(ctx context.Context, q Query, cwd string, before int64, limit int) ([]Hit, error) {
	rows, err := x.db.QueryContext(ctx, findMessages, q.matchIn(cwd), before, limit)
	return collect(rows, err, func(rows *sql.Rows, h *Hit) error {
		err := rows.Scan(&h.Number, &h.Branch, &h.Agent)
		h.Branch, h.Generation = h.Branch>>32, h.Branch&0xffffffff
		return err
	})
}

// FindTitles reads up to limit titles with a number below before, newest session first. The number is
// that of the session.
func (x *Index) FindTitles(ctx context.Context, q Query, before int64, limit int) ([]Hit, error) {
	rows, err := x.db.QueryContext(ctx, findTitles, q.match(), before, limit)
	return collect(rows, err, func(rows *sql.Rows, h *Hit) error { return rows.Scan(&h.Number) })
}

// Snippet returns the part of a message around the terms of a query, in one line.
func (x *Index) Snippet(ctx context.Context, q Query, message int64) (string, error) {
	var text string
	err := x.db.QueryRowContext(ctx, messageSnippet, q.matchIn(""), message).Scan(&text)
	return oneLine(text), err
}
