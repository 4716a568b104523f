package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"lashd/pluginloader/manifest"
)

// values holds the parameters of a call as texts, one for each element of an array. Absent
// parameters have no entry.
type values map[string][]string

// valuesOf reads the arguments of a call, which the schema has checked, and fills in defaults. It
// rejects values that the command would misread: strings with a NUL character, and strings that
// look like options.
func valuesOf(parameters []manifest.Parameter, args json.RawMessage) (values, error) {
	var present map[string]json.RawMessage
	if err := json.Unmarshal(args, &present); err != nil {
		return nil, err
	}
	v := values{}
	for _, p := range parameters {
		raw, ok := present[p.Name]
		if !ok {
			raw = p.Default
		}
		if len(raw) == 0 {
			continue
		}
		texts, err := textsOf(p, raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		v[p.Name] = texts
	}
	return v, nil
}

var (
	// Values that a command line cannot carry safely.
	errNUL  = errors.New("it contains a NUL character, which a command argument cannot contain")
	errDash = errors.New("it starts with -, which the command could read as an option")
)

// textsOf returns the texts of one parameter.
func textsOf(p manifest.Parameter, raw json.RawMessage) (texts []string, err error) {
	switch p.Type {
	case manifest.TypeArray:
		err = json.Unmarshal(raw, &texts)
	case manifest.TypeString:
		texts = []string{""}
		err = json.Unmarshal(raw, &texts[0])
	case manifest.TypeInteger, manifest.TypeNumber:
		text, err := decimal(raw)
		return []string{text}, err
	default:
		return []string{string(raw)}, nil
	}
	for _, text := range texts {
		switch {
		case strings.ContainsRune(text, 0):
			return nil, errNUL
		case strings.HasPrefix(text, "-") && !p.Dash:
			return nil, errDash
		}
	}
	return texts, err
}

// decimal returns a number without an exponent, which few programs read. An integer keeps its
// digits, so large ones stay exact.
func decimal(raw json.RawMessage) (string, error) {
	text := string(raw)
	if !strings.ContainsAny(text, ".eE") {
		return text, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	return strconv.FormatFloat(f, 'f', -1, 64), err
}

// template is the command of a tool, split into elements and pieces. The variables for the plugin's
// directories are replaced already; only the parameters of a call are missing.
type template [][]manifest.Piece

// newTemplate splits a command. put replaces the variables that do not depend on the call.
func newTemplate(command []string, put func(string) string) template {
	t := make(template, len(command))
	for i, element := range command {
		t[i] = manifest.Pieces(element)
		for j := range t[i] {
			t[i][j].Text = put(t[i][j].Text)
		}
	}
	return t
}

// fill returns the command line for the values of a call. An element with an absent parameter is
// omitted.
func (t template) fill(v values) []string {
	var argv []string
	for _, element := range t {
		if len(element) == 1 && element[0].Parameter != "" {
			argv = append(argv, v[element[0].Parameter]...) // no argument if absent, one for a scalar, one for each element of an array
			continue
		}
		if text, ok := filled(element, v); ok {
			argv = append(argv, text)
		}
	}
	return argv
}

// filled returns an element of several pieces. ok is false if one of its parameters is absent.
func filled(element []manifest.Piece, v values) (text string, ok bool) {
	for _, piece := range element {
		if piece.Parameter == "" {
			text += piece.Text
			continue
		}
		texts := v[piece.Parameter]
		if len(texts) == 0 {
			return "", false
		}
		text += texts[0]
	}
	return text, true
}

// environment returns the values as variables PARAM_name for a script. An array has one element per
// line. The script reads them as data, so they cannot inject code.
func (v values) environment() map[string]string {
	env := map[string]string{}
	for name, texts := range v {
		env["PARAM_"+name] = strings.Join(texts, "\n")
	}
	return env
}
