package starlark

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"lashd/rpc/protocol"
)

// bindingKey is the key of a manifest's bindings under which a tool says its name in code, such as "fs.read".
const bindingKey = "rlm"

// defaultModule has the tools whose names have no module.
const defaultModule = "tools"

// toolset has the tools of a session as functions in modules.
type toolset struct {
	in        *Interpreter
	modules   map[string]*starlarkstruct.Module
	bySurface map[string]*operation
}

// operation is a tool as a value: a function with the name "module.name". Calling it makes a batch of one; its method
// later returns a call for parallel.
type operation struct {
	in       *Interpreter
	surface  string
	manifest *protocol.ToolManifest // nil: the tool no longer exists
	terms    *signature             // nil: not parsed yet
}

// Tools are added in the order of their names, not of the catalog. So the number that a name gets in a conflict does not depend on
// the order in which plugins were loaded, and a stored reference finds the same tool after a restart.
func newToolset(in *Interpreter, tools []protocol.ToolManifest) *toolset {
	t := &toolset{in: in, modules: map[string]*starlarkstruct.Module{}, bySurface: map[string]*operation{}}
	sorted := slices.Clone(tools)
	slices.SortStableFunc(sorted, func(a, b protocol.ToolManifest) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for i := range sorted {
		t.add(&sorted[i])
	}
	return t
}

// add adds a tool under a free name.
func (t *toolset) add(m *protocol.ToolManifest) {
	module, name := surface(m)
	if t.in.builtins[module] != nil || reservedNames[module] != "" {
		module += "_"
	}
	full := module + "." + name
	for n := 2; t.bySurface[full] != nil; n++ {
		full = module + "." + name + "_" + strconv.Itoa(n)
	}
	op := &operation{in: t.in, surface: full, manifest: m}
	t.bySurface[full] = op
	if t.modules[module] == nil {
		t.modules[module] = &starlarkstruct.Module{Name: module, Members: starlark.StringDict{}}
	}
	t.modules[module].Members[full[len(module)+1:]] = op
}

// surface returns the module and the name of a tool in code: those of its binding, or those in its name, before and
// after the first dot. mcp__server__tool becomes server.tool.
func surface(m *protocol.ToolManifest) (module, name string) {
	full := m.Name
	var bound string
	if json.Unmarshal(m.Bindings[bindingKey], &bound) == nil && bound != "" {
		full = bound
	}
	if rest, ok := strings.CutPrefix(full, "mcp__"); ok {
		full = strings.Replace(rest, "__", ".", 1)
	}
	module, name, found := strings.Cut(full, ".")
	if !found {
		module, name = defaultModule, full
	}
	return identifier(module), identifier(name)
}

// keywords cannot be names in Starlark.
var keywords = map[string]bool{}

func init() {
	for word := range strings.FieldsSeq(`and as assert async await break class continue def del elif else except finally
		for from global if import in is lambda load nonlocal not or pass raise return try while with yield None True False`) {
		keywords[word] = true
	}
}

// identifier returns the name as an identifier: other characters become underscores, and a keyword gets one.
func identifier(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, name)
	switch {
	case name == "" || unicode.IsDigit(rune(name[0])):
		return "_" + name
	case keywords[name]:
		return name + "_"
	}
	return name
}

// reference returns the tool with a name in code. If there is none, calls of the returned value fail.
func (t *toolset) reference(surface string) *operation {
	if op := t.bySurface[surface]; op != nil {
		return op
	}
	return &operation{in: t.in, surface: surface}
}

func (o *operation) String() string        { return "<tool " + o.surface + ">" }
func (o *operation) Type() string          { return "tool" }
func (o *operation) Freeze()               {}
func (o *operation) Truth() starlark.Bool  { return true }
func (o *operation) Hash() (uint32, error) { return starlark.String(o.surface).Hash() }
func (o *operation) Name() string          { return o.surface }
func (o *operation) AttrNames() []string   { return []string{"doc", "later"} }

// Attr returns the method later and the text doc.
// A new builtin is made for each use of later. Two of them are not equal, which no code has a reason to test.
func (o *operation) Attr(name string) (starlark.Value, error) {
	switch name {
	case "later":
		return starlark.NewBuiltin(o.surface+".later", o.later), nil
	case "doc":
		return starlark.String(o.describe()), nil
	}
	return nil, nil
}

// CallInternal implements starlark.Callable: it makes the call and returns its result.
// A tool that fails is a result and not an error: Starlark could not catch the error, and the cell decides with unwrap.
func (o *operation) CallInternal(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	p, err := o.request(args, kwargs)
	if err != nil {
		return nil, err
	}
	results, err := o.in.callAll([]*pending{p})
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// later returns a call that has not been made yet.
func (o *operation) later(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return o.request(args, kwargs)
}

// request returns the call with these arguments.
// It looks the tool up again by its name, because the value may come from an earlier cell, when the session had other tools.
func (o *operation) request(args starlark.Tuple, kwargs []starlark.Tuple) (*pending, error) {
	now := o.in.tools.bySurface[o.surface]
	if now == nil {
		return nil, fmt.Errorf("the tool %s is not available%s", o.surface, hint(nearest(o.surface, slices.Collect(maps.Keys(o.in.tools.bySurface)))))
	}
	data, err := now.signature().arguments(now.surface, args, kwargs, o.in.config.Limits.Value)
	if err != nil {
		return nil, err
	}
	return &pending{surface: now.surface, call: Call{Name: now.manifest.Name, Args: data}}, nil
}

// hint returns a suggestion for an error.
func hint(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", name)
}

// signature returns the parameters of the tool.
// It is parsed at the first use, since a cell uses few of the tools that it is offered.
func (o *operation) signature() *signature {
	if o.terms == nil {
		o.terms = newSignature(o.manifest.Input)
	}
	return o.terms
}

// describe returns the signature and the description of the tool.
func (o *operation) describe() string {
	if o.manifest == nil {
		return o.surface + " is not available"
	}
	return o.surface + o.signature().String() + "\n" + o.manifest.Description + o.signature().notes()
}
