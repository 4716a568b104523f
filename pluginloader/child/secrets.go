package child

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Secret is a text that must not appear in logs and messages, and the text to show in its place.
type Secret struct{ Text, Shown string }

// shortest is the minimum length of a hidden text in bytes. Shorter texts occur in ordinary words.
const shortest = 4

// SecretsOf returns the forms in which a program may print a secret value: its words, and the value
// as it is, quoted, in JSON and in a URL. All are shown as ${name}.
func SecretsOf(name, value string) (all []Secret) {
	quoted := strconv.Quote(value)
	encoded, _ := json.Marshal(value) // a string always has an encoding
	forms := append(strings.Fields(value), value, quoted[1:len(quoted)-1], string(encoded[1:len(encoded)-1]), url.QueryEscape(value))
	slices.Sort(forms)
	for _, form := range slices.Compact(forms) {
		if len(form) >= shortest {
			all = append(all, Secret{form, "${" + name + "}"})
		}
	}
	return all
}

// secretName tells names of secrets from others; secretPrefix begins keys of well-known services.
var (
	// secretName matches names of variables and options that hold secrets.
	secretName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)key|token|secret|passw|passphrase|credential|auth|bearer|cookie|private|signature|dsn`)
	})
	// secretPrefix matches keys of well-known services by how they start.
	secretPrefix = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(sk-|pk-|rk-|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|xox[abpr]-|AKIA|ASIA|AIza|ya29\.|eyJ|hf_|npm_|Bearer |Basic )`)
	})
)

// longEnough is the minimum length in bytes of a word that may be a key by its characters alone.
const longEnough = 20

// looksSecret reports whether a value looks like a key, whatever its name: it starts like one, or
// it is a long word that mixes letters and digits.
func looksSecret(value string) bool {
	if secretPrefix().MatchString(value) {
		return true
	}
	letter, digit := strings.IndexFunc(value, unicode.IsLetter) >= 0, strings.IndexFunc(value, unicode.IsDigit) >= 0
	return len(value) >= longEnough && letter && digit && !strings.ContainsFunc(value, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+=_-.~", r)
	})
}

// secretsIn returns the secrets in a value. The whole value is secret if its name or the value
// suggests it. In a URL, user, password and secret query parameters are.
func secretsIn(name, value string) (all []Secret) {
	if secretName().MatchString(name) || looksSecret(value) {
		return SecretsOf(name, value)
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return nil
	}
	if u.User != nil {
		password, _ := u.User.Password()
		all = append(append(all, SecretsOf(name, u.User.Username())...), SecretsOf(name, password)...)
	}
	for key, values := range u.Query() {
		for _, v := range values {
			all = append(all, secretsIn(key, v)...)
		}
	}
	return all
}

// Secrets returns the secrets in a program's environment. Variables that the manifest passes on
// from lashd's environment all count as secret. Variables that it sets count if their name or value
// suggests it.
func (e Environment) Secrets() (all []Secret) {
	for _, v := range e.Daemon {
		name, value, _ := strings.Cut(v, "=")
		if slices.Contains(e.Pass, name) && !slices.Contains(inherited, name) {
			all = append(all, SecretsOf(name, value)...)
		}
	}
	for name, value := range e.Set {
		all = append(all, secretsIn(name, value)...)
	}
	return all
}

// SecretsInArgs returns the secrets in a command line: values of options and headers with a secret
// name, and words that look like keys.
func SecretsInArgs(argv []string) (all []Secret) {
	option := ""
	for _, arg := range argv {
		name, value, assigned := strings.Cut(arg, "=")
		if header, rest, is := strings.Cut(arg, ": "); is && !assigned {
			name, value, assigned = header, rest, true
		}
		switch {
		case assigned:
			all = append(all, secretsIn(strings.TrimLeft(name, "-"), value)...)
		case strings.HasPrefix(arg, "-"):
			option = strings.TrimLeft(arg, "-")
			continue
		default:
			all = append(all, secretsIn(option, arg)...)
		}
		option = ""
	}
	return all
}

// SecretsInJSON returns the secrets in a plugin's options: strings in members with a secret name,
// and strings that look like keys. Invalid JSON has none.
func SecretsInJSON(raw json.RawMessage) (all []Secret) {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return secretsInValue("option", v)
}

// secretsInValue walks a JSON value. A secret name makes everything below it secret.
func secretsInValue(name string, v any) (all []Secret) {
	switch v := v.(type) {
	case string:
		return secretsIn(name, v)
	case []any:
		for _, element := range v {
			all = append(all, secretsInValue(name, element)...)
		}
	case map[string]any:
		for key, value := range v {
			if secretName().MatchString(name) {
				key = name + "." + key
			}
			all = append(all, secretsInValue(key, value)...)
		}
	}
	return all
}

// Replacer returns a replacer that shows each secret's replacement. Where two secrets start alike,
// the longer one wins.
func Replacer(secrets []Secret) *strings.Replacer {
	secrets = slices.Clone(secrets)
	slices.SortStableFunc(secrets, func(a, b Secret) int { return len(b.Text) - len(a.Text) })
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s.Text, s.Shown)
	}
	return strings.NewReplacer(pairs...)
}
