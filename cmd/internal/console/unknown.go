package console

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"lashd/internal/strictjson"
)

// unexpected matches kong's complaint about a word that is neither a command nor an argument.
var unexpected = regexp.MustCompile(`^unexpected argument (.*?)(, did you mean .*)?$`)

// synonyms are groups of words that people use for the same command. A group has one command at most in each place.
var synonyms = [][]string{
	{"delete", "remove", "rm", "del", "uninstall"},
	{"show", "read", "get", "info", "view", "cat"},
	{"list", "ls"},
	{"add", "create", "new", "install"},
	{"cancel", "stop", "kill", "abort"},
	{"search", "find", "grep"},
	{"fork", "copy", "clone"},
	{"history", "log", "logs"},
	{"test", "try", "check"},
	{"use", "set", "default", "select"},
	{"upgrade", "update"},
	{"chat", "continue"},
	{"rules", "rule", "permissions", "approvals", "allow", "deny"},
	{"audit", "calls"},
	{"status", "ps"},
	{"undo", "revert", "rewind"},
}

// anID matches the beginning of an id, with or without the prefix of its type.
var anID = regexp.MustCompile(`^([a-z]{3}_|[0-9a-f]{4,}$)`)

// unknownCommand returns the error for a word that is not a command, nil if err is another error. hints are sentences about words that
// stand for no single command.
func unknownCommand(err *kong.ParseError, hints map[string]string) error {
	m := unexpected.FindStringSubmatch(err.Error())
	at := commandOf(err.Context)
	if m == nil || len(at.Children) == 0 {
		return nil
	}
	word, path := m[1], at.FullPath()
	if hint := hints[word]; hint != "" && at == err.Context.Model.Node {
		return errors.New(hint)
	}
	text := fmt.Sprintf("unknown command: %s %s", path, word)
	if near := meant(word, at); near != "" {
		return fmt.Errorf("%s; did you mean: %s %s? See %[2]s --help", text, path, near)
	}
	return fmt.Errorf("%s; see %s --help", text, path)
}

// commandOf returns the command whose name was entered last. A default command that was not named does not count.
func commandOf(at *kong.Context) *kong.Node {
	node := at.Selected()
	switch {
	case node == nil:
		return at.Model.Node
	case node.Parent != nil && node.Parent.DefaultCmd == node && !slices.Contains(at.Args, node.Name):
		return node.Parent
	}
	return node
}

// meant returns the command below at that a word probably means, "" if none is near.
func meant(word string, at *kong.Node) string {
	var names []string
	for _, c := range at.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	if slices.Contains(names, "show") && anID.MatchString(word) {
		return "show " + word
	}
	if name := synonym(word, names); name != "" {
		return name
	}
	if one := strings.TrimSuffix(word, "s"); slices.Contains(names, one) {
		return one
	}
	return strictjson.Nearest(word, names)
}

// synonym returns the one of names that means the same as a word, "" if there is none.
func synonym(word string, names []string) string {
	for _, group := range synonyms {
		if !slices.Contains(group, word) {
			continue
		}
		if i := slices.IndexFunc(group, func(s string) bool { return slices.Contains(names, s) }); i >= 0 {
			return group[i]
		}
	}
	return ""
}
