package layout

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// words is a list in a front matter: a YAML list, or a text with commas or spaces between the words.
type words []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		var list []string
		err := n.Decode(&list)
		*w = list
		return err
	}
	var text string
	err := n.Decode(&text)
	*w = splitWords(text)
	return err
}

// splitWords splits a text at commas and spaces, except in parentheses, as in Bash(git add *).
func splitWords(text string) (all []string) {
	depth := 0
	return slices.DeleteFunc(strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth == 0 && strings.ContainsRune(", \t\n[]", r)
	}), func(s string) bool { return s == "" })
}

// text is a scalar of a front matter. A list becomes its words, because `argument-hint: [file]` is one in YAML.
type text string

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *text) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		var list []string
		err := n.Decode(&list)
		*t = text("[" + strings.Join(list, "] [") + "]")
		return err
	}
	var s string
	err := n.Decode(&s)
	*t = text(strings.TrimSpace(s))
	return err
}

// split separates the front matter of a file from its body. A file without one has an empty front matter.
func split(data []byte) (front, body []byte) {
	data = bytes.TrimPrefix(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\xef\xbb\xbf"))
	rest, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return nil, data
	}
	if front, body, ok = bytes.Cut(rest, []byte("\n---\n")); ok {
		return front, body
	}
	if front, ok = bytes.CutSuffix(bytes.TrimRight(rest, "\n"), []byte("\n---")); ok {
		return front, nil
	}
	return nil, data
}

// decode decodes a front matter into v and returns the names of its fields. Other agents accept texts that are not YAML, such as
// descriptions with colons; the value of such a field is the rest of its lines.
func decode(front []byte, v any) (fields []string, err error) {
	var all map[string]yaml.Node
	if yaml.Unmarshal(front, &all) != nil {
		front = plain(front)
		if err := yaml.Unmarshal(front, &all); err != nil {
			return nil, err
		}
	}
	for name := range all {
		fields = append(fields, name)
	}
	slices.Sort(fields)
	return fields, yaml.Unmarshal(front, v)
}

// field matches a line that begins a field.
var field = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*):[ \t]*(.*)$`)

// plain rewrites a front matter so that the value of each field that is not YAML is a quoted text. Lines without a name continue the
// field before.
func plain(front []byte) []byte {
	var chunks []string
	for line := range strings.Lines(string(front)) {
		if field.MatchString(strings.TrimRight(line, "\r\n")) {
			chunks = append(chunks, line)
		} else if len(chunks) > 0 {
			chunks[len(chunks)-1] += line
		}
	}
	for i, chunk := range chunks {
		if yaml.Unmarshal([]byte(chunk), new(map[string]yaml.Node)) != nil {
			m := field.FindStringSubmatch(strings.Join(strings.Fields(chunk), " "))
			chunks[i] = m[1] + ": '" + strings.ReplaceAll(strings.Trim(m[2], `"'`), "'", "''") + "'\n"
		}
	}
	return []byte(strings.Join(chunks, ""))
}
