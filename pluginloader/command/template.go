package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"lashd/pluginloader/manifest"
)

// values are what a call gives the parameters of a command, as texts; of an array, one for each element. What is absent is
// not there.
type values map[string][]string

// valuesOf reads the arguments of a call, which fit the schema. What would be taken for something else by the command is
// refused.
func valuesOf(parameters []manifest.Parameter, args json.RawMessage) (values, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil {
		return nil, err
	}
	v := values{}
	for _, p := range parameters {
		raw, ok := given[p.Name]
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
	errNUL  = errors.New("a character of code 0 cannot be given to a command")
	errDash = errors.New("it begins with -, which the command could take for an option")
)

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

// decimal is a number without an exponent, which few programs read: digits as they are given, or else as short as they can
// be.
func decimal(raw json.RawMessage) (string, error) {
	text := string(raw)
	if !strings.ContainsAny(text, ".eE") {
		return text, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	return strconv.FormatFloat(f, 'f', -1, 64), err
}

// template is the command of a tool, taken apart.
type template [][]manifest.Piece

// newTemplate takes a command apart; put puts in what does not depend on the call.
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

// fill is the command with values.
func (t template) fill(v values) []string {
	var argv []string
	for _, element := range t {
		if len(element) == 1 && element[0].Parameter != "" {
			argv = append(argv, v[element[0].Parameter]...) // one, as many as an array has, or none
			continue
		}
		if text, ok := filled(element, v); ok {
			argv = append(argv, text)
		}
	}
	return argv
}

// filled is an element of several pieces; ok is false if one of them is absent.
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

// environment are the values as a script finds them: PARAM_name, an array with an element in each line.
func (v values) environment() map[string]string {
	env := map[string]string{}
	for name, texts := range v {
		env["PARAM_"+name] = strings.Join(texts, "\n")
	}
	return env
}
