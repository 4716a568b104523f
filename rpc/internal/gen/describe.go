package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"lashd/rpc/protocol"
)

// describe parses the Go files in dir. For each type name it returns the comments of the type and
// its fields, and the type's string constants with their comments.
func describe(dir string) (map[string]protocol.TypeDoc, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go")) // sorted
	if err != nil {
		return nil, err
	}
	docs := map[string]protocol.TypeDoc{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				addDecl(docs, g)
			}
		}
	}
	return docs, nil
}

// addDecl adds the types and string constants of one declaration.
func addDecl(docs map[string]protocol.TypeDoc, g *ast.GenDecl) {
	for _, s := range g.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			doc := docs[s.Name.Name]
			if doc.Doc, doc.Fields = sentence(s.Doc, s.Comment), fieldDocs(s.Type); doc.Doc == "" && !g.Lparen.IsValid() {
				doc.Doc = sentence(g.Doc)
			}
			docs[s.Name.Name] = doc
		case *ast.ValueSpec:
			addValue(docs, s)
		}
	}
}

// addValue adds a constant of a named string type to the values of that type. Other constants are
// ignored.
func addValue(docs map[string]protocol.TypeDoc, s *ast.ValueSpec) {
	typ, ok := s.Type.(*ast.Ident)
	if !ok || len(s.Values) != 1 {
		return
	}
	lit, ok := s.Values[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	value, err := strconv.Unquote(lit.Value)
	if err != nil {
		panic("the parser accepted " + lit.Value)
	}
	doc := docs[typ.Name]
	doc.Values = append(doc.Values, protocol.ValueDoc{Value: value, Doc: sentence(s.Doc, s.Comment)})
	docs[typ.Name] = doc
}

// fieldDocs returns the comments of a struct's fields by their name on the wire. Of a comment above
// and one behind the field, the first counts.
func fieldDocs(t ast.Expr) map[string]string {
	st, ok := t.(*ast.StructType)
	if !ok {
		return nil
	}
	fields := map[string]string{}
	for _, f := range st.Fields.List {
		if text := sentence(f.Doc, f.Comment); text != "" && len(f.Names) == 1 && f.Tag != nil {
			fields[wireName(f.Tag.Value)] = text
		}
	}
	return fields
}

// wireName returns the name in a json or toml tag.
func wireName(tag string) string {
	raw, _ := strconv.Unquote(tag) // it compiled
	tags := reflect.StructTag(raw)
	name, _, _ := strings.Cut(cmp.Or(tags.Get("json"), tags.Get("toml")), ",")
	return name
}

// sentence returns the text of the first comment that is not empty, on one line. Tables need one
// line per entry.
func sentence(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			return text
		}
	}
	return ""
}
