package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"lashd/engine/authority"
	"lashd/internal/pathresolve"
)

// secretVariables are variables that name files or directories with keys, tokens and passwords, and the parts of each directory that have
// them. Without parts, all of it is secret. KUBECONFIG may list several files.
var secretVariables = []struct {
	name  string
	parts []string
}{
	{"GNUPGHOME", nil}, {"PASSWORD_STORE_DIR", nil}, {"AWS_SHARED_CREDENTIALS_FILE", nil}, {"AWS_CONFIG_FILE", nil}, {"AWS_WEB_IDENTITY_TOKEN_FILE", nil}, {"AZURE_CONFIG_DIR", nil},
	{"GOOGLE_APPLICATION_CREDENTIALS", nil}, {"CLOUDSDK_CONFIG", nil}, {"BOTO_CONFIG", nil}, {"OCI_CLI_CONFIG_FILE", nil}, {"KUBECONFIG", nil}, {"DOCKER_CONFIG", nil}, {"REGISTRY_AUTH_FILE", nil},
	{"VAULT_CONFIG_PATH", nil}, {"TF_CLI_CONFIG_FILE", nil}, {"SOPS_AGE_KEY_FILE", nil}, {"GH_CONFIG_DIR", nil}, {"GLAB_CONFIG_DIR", nil}, {"NETRC", nil}, {"PGPASSFILE", nil}, {"MYSQL_TEST_LOGIN_FILE", nil},
	{"NPM_CONFIG_USERCONFIG", nil}, {"npm_config_userconfig", nil}, {"PIP_CONFIG_FILE", nil}, {"HISTFILE", nil}, {"XAUTHORITY", nil}, {"KRB5CCNAME", nil}, {"CLAUDE_CONFIG_DIR", nil}, {"CODEX_HOME", nil},
	{"CARGO_HOME", []string{"credentials", "credentials.toml"}}, {"GRADLE_USER_HOME", []string{"gradle.properties"}}, {"COMPOSER_HOME", []string{"auth.json"}},
	{"XDG_CONFIG_HOME", inDirectory(".config/")}, {"XDG_DATA_HOME", inDirectory(".local/share/")},
}

// inDirectory returns the secret names of the home directory that are in one of its directories.
func inDirectory(dir string) (parts []string) {
	for _, name := range secretNames {
		if part, ok := strings.CutPrefix(name, dir); ok {
			parts = append(parts, part)
		}
	}
	return parts
}

// NamedSecrets returns the files and directories with secrets that an environment names, and the keys that the configuration of ssh names.
// Names that are no absolute paths are left out.
func NamedSecrets(env []string, home string) (all []string) {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		for _, v := range secretVariables {
			if v.name == name {
				all = append(all, secretsIn(strings.TrimPrefix(value, "FILE:"), v.parts)...)
			}
		}
	}
	return append(all, identities(home)...)
}

// secretsIn returns the secrets in the files or directories that the value of a variable lists.
func secretsIn(value string, parts []string) (all []string) {
	for _, path := range filepath.SplitList(value) {
		switch {
		case !filepath.IsAbs(path):
		case parts == nil:
			all = append(all, filepath.Clean(path))
		default:
			for _, part := range parts {
				all = append(all, filepath.Join(path, part))
			}
		}
	}
	return all
}

// identityLine names the file of a private key in the configuration of ssh.
var identityLine = regexp.MustCompile(`(?im)^\s*IdentityFile[\s=]+"?([^"\n]+?)"?\s*$`)

// identities returns the private keys outside of .ssh that the user's configuration of ssh names.
func identities(home string) (all []string) {
	if home == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(home, ".ssh", "config"))
	if err != nil {
		return nil // most users have none
	}
	for _, m := range identityLine.FindAllStringSubmatch(string(data), -1) {
		path := m[1]
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(home, rest)
		}
		if filepath.IsAbs(path) && !strings.Contains(path, "%") {
			all = append(all, filepath.Clean(path))
		}
	}
	return all
}

// named returns the named secrets that a command in a workspace does not see. Files of the workspace are open to its commands, and a
// directory that has the workspace in it cannot be hidden.
func (p Places) named(workspace string) (all []string) {
	for _, path := range p.Named {
		if real, err := pathresolve.Existing(path); err == nil {
			path = real
		}
		if !authority.Inside(path, workspace) && !authority.Inside(workspace, path) && (p.Home == "" || !authority.Inside(p.Home, path)) {
			all = append(all, path)
		}
	}
	return all
}

// missing returns a sentence about the variables that the command does not get and that its output names; empty if there are none.
func (b *Box) missing(output string) string {
	names := slices.DeleteFunc(slices.Clone(b.withheld), func(name string) bool { return !strings.Contains(output, name) })
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("[Commands do not get the variable %s, because it may be a secret. To pass it on, the person adds this to config.toml: sandbox_env = [%q]]\n", strings.Join(names, ", "),
		names[0])
}
