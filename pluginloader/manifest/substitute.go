package manifest

import (
	"bytes"
	"slices"
	"strings"

	"lashd/internal/strictjson"
)

// Variables that lashd replaces in commands, arguments and values of environment variables.
const (
	varRoot = "PLUGIN_ROOT" // the plugin's directory
	varData = "PLUGIN_DATA" // the directory for the plugin's own files
)

// aliases maps other agents' names of these variables to lashd's.
var aliases = map[string]string{"CLAUDE_PLUGIN_ROOT": varRoot, "CLAUDE_PLUGIN_DATA": varData}

// variable is a variable that can be put in, likeVariable what looks like one.
var (
	// variable matches a reference that can be replaced, with an optional default.
	variable = lazy(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)
	// likeVariable matches everything that looks like a reference, for error messages.
	likeVariable = lazy(`\$\{([^}]*)\}?`)
)

// Substitute replaces ${PLUGIN_ROOT} and ${PLUGIN_DATA}. Other names occur only in files of other
// agents; get looks them up, and ${NAME:-default} has a default. It does not replace references
// inside inserted values.
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

// Values of the subst tag, which types.go explains.
const (
	substYes  = "yes"
	substNone = "none"
	substOwn  = "own"
)

// substitutions checks the variables of a string against the subst tag of its field.
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
			s.add(s.reference(pointer, i), false, "${%s} is replaced only in commands, arguments and values of env", name)
		case known && !strings.HasSuffix(ref, "}"):
			s.add(s.reference(pointer, i), false, "%s has no closing brace", strictjson.Quote(ref))
		case !known && tag != "":
			s.add(s.reference(pointer, i), false, "%s is not replaced; only ${%s} and ${%s} are, in commands, arguments and values of env",
				strictjson.Quote(ref), varRoot, varData)
		}
	}
}

// reference returns the offset of the nth variable of a string, or of the string itself if its text
// contains escapes.
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

// environment rewrites other agents' names of lashd's variables. names are the remaining variables,
// which come from lashd's environment.
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
