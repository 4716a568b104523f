package mcpinput

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// Hint returns what people type after the name of a prompt.
func Hint(arguments []protocol.CommandArgument) string {
	var all []string
	for _, a := range arguments {
		if a.Required {
			all = append(all, "<"+a.Name+">")
		} else {
			all = append(all, "["+a.Name+"]")
		}
	}
	return strings.Join(all, " ")
}

// Assign gives the words of a line to the arguments of a prompt. A word NAME=VALUE is for the argument of that name. The other words fill the
// remaining arguments in order, and the last argument gets all words that are left. Quotes keep spaces.
func Assign(arguments []protocol.CommandArgument, line string) (map[string]string, error) {
	all, open := words(line)
	if open {
		return nil, errors.New("a quote is not closed")
	}
	values, free, rest := named(arguments, all)
	for i, a := range free {
		switch {
		case len(rest) == 0:
		case i == len(free)-1:
			values[a.Name], rest = joined(rest), nil
		default:
			values[a.Name], rest = rest[0].text, rest[1:]
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("it takes no argument %q", rest[0].text)
	}
	for _, a := range arguments {
		if _, set := values[a.Name]; a.Required && !set {
			return nil, fmt.Errorf("the argument %s is missing; write %s", a.Name, Hint(arguments))
		}
	}
	return values, nil
}

// Argument is the argument of a prompt that a person is writing.
type Argument struct {
	protocol.CommandArgument
	Value  string            // what is written of it
	At     int               // where the value begins in the line, in bytes, with its quote
	Others map[string]string // values of the arguments before it
}

// ArgumentOf returns the argument at the end of a line, by the rules of Assign. false: the prompt takes no more, or the name of the argument is in
// quotes.
func ArgumentOf(arguments []protocol.CommandArgument, line string) (a Argument, ok bool) {
	all, open := words(line)
	if line == "" || !open && strings.ContainsAny(line[len(line)-1:], blank) {
		all = append(all, word{at: len(line)})
	}
	last := all[len(all)-1]
	values, free, rest := named(arguments, all[:len(all)-1])
	if i, value := nameOf(arguments, last.text); i >= 0 {
		at := last.at + len(arguments[i].Name) + 1
		return Argument{arguments[i], value, at, values}, line[at-1] == '='
	}
	for i, f := range free {
		if i == len(free)-1 {
			rest = append(rest, last)
			return Argument{f, joined(rest), rest[0].at, values}, true
		}
		if len(rest) == 0 {
			return Argument{f, last.text, last.at, values}, true
		}
		values[f.Name], rest = rest[0].text, rest[1:]
	}
	return a, false
}

// Quoted returns a value as a word of a line; false if a line cannot have it as an argument without its name.
func Quoted(arguments []protocol.CommandArgument, value string) (string, bool) {
	if i, _ := nameOf(arguments, value); i >= 0 || strings.ContainsAny(value, "\n\x00") {
		return "", false
	}
	for _, quote := range []string{"", `"`, "'"} {
		if all, open := words(quote + value + quote); !open && len(all) == 1 && all[0].text == value {
			return quote + value + quote, true
		}
	}
	return "", false
}

// named returns the values of the words NAME=VALUE, the arguments without a value, and the other words.
func named(arguments []protocol.CommandArgument, all []word) (values map[string]string, free []protocol.CommandArgument, rest []word) {
	values = map[string]string{}
	for _, w := range all {
		if i, value := nameOf(arguments, w.text); i >= 0 {
			values[arguments[i].Name] = value
		} else {
			rest = append(rest, w)
		}
	}
	free = slices.DeleteFunc(slices.Clone(arguments), func(a protocol.CommandArgument) bool { _, set := values[a.Name]; return set })
	return values, free, rest
}

// nameOf returns the argument of a word NAME=VALUE and its value; -1 for other words.
func nameOf(arguments []protocol.CommandArgument, text string) (at int, value string) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return -1, ""
	}
	return slices.IndexFunc(arguments, func(a protocol.CommandArgument) bool { return a.Name == name }), value
}

// word is a word of a line, without quotes.
type word struct {
	text string
	at   int // where it begins, with a quote
}

// joined returns words with spaces between them.
func joined(all []word) string {
	var texts []string
	for _, w := range all {
		texts = append(texts, w.text)
	}
	return strings.Join(texts, " ")
}

// blank has the characters between words.
const blank = " \t\n"

// words splits a line at spaces outside of quotes. open reports that the quote of the last word is not closed.
func words(line string) (all []word, open bool) {
	quote, in := rune(0), false
	for at, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
			continue
		case quote == 0 && strings.ContainsRune(blank, c):
			in = false
			continue
		}
		if !in {
			all, in = append(all, word{at: at}), true
		}
		if quote == 0 && (c == '"' || c == '\'') {
			quote = c
			continue
		}
		all[len(all)-1].text += string(c)
	}
	return all, quote != 0
}
