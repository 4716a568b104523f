package manifest

import (
	"bytes"
	"slices"
	"strings"

	"lashd/internal/strictjson"
)

// Variables that stand in argv and in values of environments.
const (
	varRoot = "PLUGIN_ROOT" // the directory of the plugin
	varData = "PLUGIN_DATA" // the directory that the plugin may keep files in
)

// aliases are the variables as other agents call them.
var aliases = map[string]string{"CLAUDE_PLUGIN_ROOT": varRoot, "CLAUDE_PLUGIN_DATA": varData}

// variable is a variable that can be put in, likeVariable what looks like one.
var (
	variable     = lazy(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)
	likeVariable = lazy(`\$\{([^}]*)\}?`)
)

// Substitute puts directories in place of ${PLUGIN_ROOT} and ${PLUGIN_DATA}, and what get finds in place of other names,
// which only files of other agents have: ${NAME} or ${NAME:-default}. What is put in is not looked at again.
func Substitute(text, root, data string, get func(string) (string, bool)) string {
	return variable().ReplaceAllStringFunc(text, func(ref string) string {
		name, otherwise, _ := strings.Cut(ref[2:len(ref)-1], ":-")
		switch name {
		case varRoot:
			return root
		case varData:
			return data
		}
		if value, ok := get(name); ok && value != "" {
			return value
		}
		return otherwise
	})
}

// What a subst tag says.
const (
	substYes  = "yes"
	substNone = "none"
	substOwn  = "own"
)

// substitutions checks the variables of a string, as the tag of its field wants it.
func (s *source) substitutions(pointer, text, tag string) {
	if tag == substOwn || s.foreign {
		return
	}
	for i, m := range likeVariable().FindAllStringSubmatchIndex(text, -1) {
		ref, name := text[m[0]:m[1]], text[m[2]:m[3]]
		known := name == varRoot || name == varData
		switch {
		case s.full(false):
			return
		case known && tag != substYes:
			s.add(s.reference(pointer, i), false, "${%s} is put in only in commands, arguments and values of env", name)
		case known && !strings.HasSuffix(ref, "}"):
			s.add(s.reference(pointer, i), false, "%s has no closing brace", strictjson.Quote(ref))
		case !known && tag != "":
			s.add(s.reference(pointer, i), false, "%s is not put in: only ${%s} and ${%s} are, in commands, arguments and values of env",
				strictjson.Quote(ref), varRoot, varData)
		}
	}
}

// reference is where the nth variable of a string begins, or the string if its text has escapes.
func (s *source) reference(pointer string, n int) int {
	_, at := strictjson.Find(s.data, pointer)
	end := at + 1
	for end < len(s.data) && s.data[end] != '"' {
		if s.data[end] == '\\' {
			return at
		}
		end++
	}
	for range n + 1 {
		next := bytes.Index(s.data[at:end], []byte("${"))
		if next < 0 {
			return at
		}
		at += next + 2
	}
	return at - 2
}

// environment are the names of other agents' variables in a text, which are taken from the environment of lashd; it is
// rewritten with lashd's own names for those that mean the same.
func environment(text string) (rewritten string, names []string) {
	rewritten = variable().ReplaceAllStringFunc(text, func(ref string) string {
		name, _, _ := strings.Cut(ref[2:len(ref)-1], ":-")
		if own, ok := aliases[name]; ok {
			return "${" + own + "}"
		}
		if name != varRoot && name != varData && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return ref
	})
	return rewritten, names
}
