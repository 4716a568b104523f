package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"lashd/cmd/internal/providers"
	"lashd/pluginloader"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// Problem is an error in config.toml and its position, which editors use to
// underline it. Line and Column count from 1; Column is 0 if only the line is
// known.
type Problem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Column == 0 {
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
}

// words are the values of enumerated settings, by type. The check, its messages
// and the JSON Schema use this table.
var words = map[reflect.Type][]string{
	reflect.TypeFor[protocol.ApprovalMode]():      {string(protocol.ApproveAllow), string(protocol.ApproveAsk), string(protocol.ApproveDeny)},
	reflect.TypeFor[providers.API]():              {string(providers.Chat), string(providers.Responses), string(providers.Anthropic), string(providers.Gemini)},
	reflect.TypeFor[protocol.Modality]():          {string(protocol.ModalityText), string(protocol.ModalityImage), string(protocol.ModalityPDF)},
	reflect.TypeFor[protocol.ReasoningEncoding](): {string(protocol.EncodeEffort), string(protocol.EncodeBudget)},
	reflect.TypeFor[protocol.CacheRetention]():    {string(protocol.CacheNone), string(protocol.CacheShort), string(protocol.CacheLong)},
	reflect.TypeFor[protocol.SandboxMode]():       {string(protocol.SandboxReadOnly), string(protocol.SandboxWorkspace), string(protocol.SandboxFullAccess)},
	reflect.TypeFor[manifest.ServerMode]():        {string(manifest.ServerReadOnly), string(manifest.ServerFullAccess)},
	reflect.TypeFor[pluginloader.SandboxMode]():   {string(pluginloader.SandboxOff), string(pluginloader.SandboxOn), string(pluginloader.SandboxRequired)},
}

// Parse parses config.toml and returns its first problem. Unknown keys are
// errors, so that a misspelled setting is not silently ignored. The daemon calls
// it at its start.
func Parse(data []byte) (Config, error) {
	c, problems := readConfig(data)
	if len(problems) > 0 {
		return c, &problems[0]
	}
	return c, nil
}

// readConfig parses config.toml and returns all problems, ordered by line. A
// syntax error is the only problem, because it hides the others. It looks for
// wrong types in the untyped document first: the decoder would stop at the first
// of them.
func readConfig(data []byte) (Config, []Problem) {
	var c Config
	var said map[string]any
	err := toml.Unmarshal(data, &said)
	bad := badTypes(reflect.TypeFor[Config](), said, nil)
	if err == nil && len(bad) == 0 {
		err = toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&c)
		bad = append(badValues(reflect.ValueOf(c), nil), slices.Concat(c.badModels(), c.badProviders(), c.badDefault(), c.badRules())...)
	}
	var problems []Problem
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		for _, e := range unknown.Errors {
			line, _ := e.Position()
			problems = append(problems, Problem{Line: line, Message: unknownKey(e.Key())})
		}
	} else if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := wrong.Position()
		return c, []Problem{{line, column, strings.TrimPrefix(wrong.Error(), "toml: ")}}
	} else if err != nil {
		return c, []Problem{{1, 0, err.Error()}}
	}
	for _, bad := range bad {
		problems = append(problems, Problem{Line: lineOf(data, bad.key, bad.nth), Message: bad.message})
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return c, problems
}

// unknownKey returns the message for an unknown key. It suggests the closest key
// of the same table and lists all of them.
func unknownKey(key toml.Key) string {
	table := reflect.TypeFor[Config]()
	for _, in := range key[:len(key)-1] {
		if table.Kind() == reflect.Map {
			table = table.Elem() // in is the name of a table
			continue
		}
		table = tableOf(table, in)
	}
	var known []string
	for field := range table.Fields() {
		known = append(known, field.Tag.Get("toml"))
	}
	slices.Sort(known)
	return fmt.Sprintf("unknown key %q%s (known keys: %s)", strings.Join(key, "."), DidYouMean(key[len(key)-1], known), strings.Join(known, ", "))
}

// tableOf returns the type of the table key in another table, or of a map of tables.
// If there is no such table, it returns in.
func tableOf(in reflect.Type, key string) reflect.Type {
	for field := range in.Fields() {
		t := field.Type
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		tables := t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct
		if field.Tag.Get("toml") == key && (t.Kind() == reflect.Struct || tables) {
			return t
		}
	}
	return in
}

// lineOf returns the line of a key or, if the key itself is absent, of the
// innermost table of its path. nth is the index of the table if there are several
// of the same name, as in [[models]]. The result is 1 if not even a table is
// present.
func lineOf(data []byte, path []string, nth int) int {
	var p unstable.Parser
	p.Reset(data)
	var table []string
	line, depth := 1, 0
	before := nth // number of tables of the same name still to skip
	for p.NextExpression() {
		e := p.Expression()
		at, key := keyOf(&p, e)
		if e.Kind == unstable.KeyValue {
			key = append(slices.Clone(table), key...)
		} else {
			table = key
		}
		if e.Kind == unstable.ArrayTable && len(key) <= len(path) && slices.Equal(key, path[:len(key)]) {
			switch before--; before {
			case -1:
				line, depth = at, len(key)
			case -2:
				return line
			}
			continue
		}
		if before >= 0 && nth > 0 {
			continue
		}
		if len(key) > depth && len(key) <= len(path) && slices.Equal(key, path[:len(key)]) {
			line, depth = at, len(key)
		}
	}
	return line
}

// keyOf returns the line and the path of the key of an assignment or a table header.
func keyOf(p *unstable.Parser, e *unstable.Node) (line int, key []string) {
	for it := e.Key(); it.Next(); {
		line = cmp.Or(line, p.Shape(it.Node().Raw).Start.Line)
		key = append(key, string(it.Node().Data))
	}
	return line, key
}
