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

// Secret is a text that nobody but the program may see, and what is shown instead.
type Secret struct{ Text, Shown string }

// shortest is how many bytes a text has at least that is hidden: shorter ones are in too many words.
const shortest = 4

// SecretsOf gives the forms in which a program may print a secret value.
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
	secretName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)key|token|secret|passw|passphrase|credential|auth|bearer|cookie|private|signature|dsn`)
	})
	secretPrefix = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(sk-|pk-|rk-|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|xox[abpr]-|AKIA|ASIA|AIza|ya29\.|eyJ|hf_|npm_|Bearer |Basic )`)
	})
)

// longEnough is how many bytes a word of letters and digits has at least that may be a key.
const longEnough = 20

// looksSecret tells whether a value looks like a key, whatever its name is.
func looksSecret(value string) bool {
	if secretPrefix().MatchString(value) {
		return true
	}
	letter, digit := strings.IndexFunc(value, unicode.IsLetter) >= 0, strings.IndexFunc(value, unicode.IsDigit) >= 0
	return len(value) >= longEnough && letter && digit && !strings.ContainsFunc(value, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+=_-.~", r)
	})
}

// secretsIn gives the secrets in a value: all of it, if its name or the value says so, or the credentials of an address.
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

// Secrets are those in the environment that a program gets: variables that it is passed from lashd's environment, and of its own
// those that are secret by their name or their value.
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

// SecretsInArgs are those in arguments: values of options with the name of a secret, and words that look like one.
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

// SecretsInJSON are those in options: texts in members with the name of a secret, and texts that look like one.
func SecretsInJSON(raw json.RawMessage) (all []Secret) {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return secretsInValue("option", v)
}

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

// Replacer shows other words in the place of secrets: of two that begin alike, the longer one is taken.
func Replacer(secrets []Secret) *strings.Replacer {
	secrets = slices.Clone(secrets)
	slices.SortStableFunc(secrets, func(a, b Secret) int { return len(b.Text) - len(a.Text) })
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s.Text, s.Shown)
	}
	return strings.NewReplacer(pairs...)
}
