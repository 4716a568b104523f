package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// hint returns what people type after the name of a prompt.
func promptHint(arguments []protocol.CommandArgument) string {
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

// assign gives the words of a line to the arguments of a prompt. A word NAME=VALUE is for the argument of that name. The other words fill the
// remaining arguments in order, and the last argument gets all words that are left. Quotes keep spaces.
func assign(arguments []protocol.CommandArgument, line string) (map[string]string, error) {
	all, err := words(line)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	var rest []string
	for _, word := range all {
		name, value, named := strings.Cut(word, "=")
		if named && slices.ContainsFunc(arguments, func(a protocol.CommandArgument) bool { return a.Name == name }) {
			values[name] = value
		} else {
			rest = append(rest, word)
		}
	}
	free := slices.DeleteFunc(slices.Clone(arguments), func(a protocol.CommandArgument) bool { _, set := values[a.Name]; return set })
	for i, a := range free {
		switch {
		case len(rest) == 0:
		case i == len(free)-1:
			values[a.Name], rest = strings.Join(rest, " "), nil
		default:
			values[a.Name], rest = rest[0], rest[1:]
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("it takes no argument %q", rest[0])
	}
	for _, a := range arguments {
		if _, set := values[a.Name]; a.Required && !set {
			return nil, fmt.Errorf("the argument %s is missing; write %s", a.Name, promptHint(arguments))
		}
	}
	return values, nil
}

// words splits a line at spaces outside of quotes.
func words(line string) (all []string, err error) {
	word, quote, in := "", rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word += string(c)
		case c == '"' || c == '\'':
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				all, word, in = append(all, word), "", false
			}
		default:
			word, in = word+string(c), true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if in {
		all = append(all, word)
	}
	return all, nil
}
