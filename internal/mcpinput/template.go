package mcpinput

import (
	"net/url"
	"strings"
)

// matches reports whether a uri has the fixed parts of a template in their order. Each expression in braces stands for any text.
func matches(template, uri string) bool {
	fixed, expressions := split(template)
	rest, ok := strings.CutPrefix(uri, fixed[0])
	if !ok || len(expressions) == 0 {
		return ok && rest == ""
	}
	for _, part := range fixed[1 : len(fixed)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, fixed[len(fixed)-1])
}

// split returns the fixed parts of a template, and the expressions between them without braces.
func split(template string) (fixed, expressions []string) {
	for {
		before, rest, open := strings.Cut(template, "{")
		expression, after, closed := strings.Cut(rest, "}")
		if !open || !closed {
			return append(fixed, template), expressions
		}
		fixed, expressions, template = append(fixed, before), append(expressions, expression), after
	}
}

// Variable is the variable of a template whose value a person is writing.
type Variable struct {
	Name   string
	Value  string            // what is written of it
	Others map[string]string // values of the variables before it
	Last   bool              // the template has no other after it

	before   string // the uri before the value
	after    string // the fixed part after the value
	reserved bool   // the value can have reserved characters, such as slashes
}

// VariableOf returns the variable at the end of the beginning of a uri; false if the uri does not begin as the template does, if it is complete,
// or if the template has other expressions there than {name} and {+name}.
func VariableOf(template, begun string) (Variable, bool) {
	fixed, expressions := split(template)
	rest, ok := strings.CutPrefix(begun, fixed[0])
	v := Variable{Others: map[string]string{}}
	for i, expression := range expressions {
		v.Name, v.reserved = strings.CutPrefix(expression, "+")
		if !ok || !isVariable(v.Name) {
			return v, false
		}
		v.after, v.Last = fixed[i+1], i == len(expressions)-1
		value, after, ended := strings.Cut(rest, v.after)
		if v.after == "" || !ended {
			v.Value, v.before = unescaped(rest), begun[:len(begun)-len(rest)]
			return v, true
		}
		v.Others[v.Name], rest = unescaped(value), after
	}
	return v, false
}

// With returns the uri up to the next variable, with a value of the variable.
func (v Variable) With(value string) string {
	escaped := url.PathEscape(value)
	if v.reserved {
		escaped = (&url.URL{Path: value}).EscapedPath()
	}
	return v.before + escaped + v.after
}

// isVariable reports whether a text is the name of a variable, without modifiers.
func isVariable(text string) bool {
	return text != "" && !strings.ContainsAny(text, "+#./;?&,:*=!@|")
}

// unescaped returns the value of a variable in a uri.
func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// Fixed returns the part of a template before its first variable.
func Fixed(template string) string {
	fixed, _ := split(template)
	return fixed[0]
}
