// Package plugins embeds the SDKs and the templates of new plugins, for each language. Its functions are safe for concurrent use.
package plugins

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// embedded holds the templates and the SDKs, so that `lash plugin new` works without files beside
// the binary.
//
//go:embed templates sdk/python/lashd_plugin.py sdk/typescript/lashd-plugin.mts sdk/go/lashdplugin/*.go
var embedded embed.FS

// sdks maps each language to the files of its SDK. A plugin of commands needs none.
var sdks = map[string]string{
	"python": "sdk/python/*.py", "ts": "sdk/typescript/*.mts", "go": "sdk/go/*/*.go", "command": "",
}

// File is a file of a plugin.
type File struct {
	Path string // relative to the plugin's directory
	Data []byte
}

// New returns the files of a working plugin, with a test and the SDK. language is python, ts, go or
// command; any other is an error. The placeholders @NAME@ and @TOOL@ in templates are replaced. New
// does not validate the name; package manifest does.
func New(language, name string) ([]File, error) {
	names := strings.NewReplacer("@NAME@", name, "@TOOL@", toolName(name))
	var files []File
	root := path.Join("templates", language)
	err := fs.WalkDir(embedded, root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(file)
		rel := strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".tmpl")
		files = append(files, File{rel, []byte(names.Replace(string(text)))})
		return err
	})
	if err != nil {
		return nil, err
	}
	sdk, err := sdkOf(language)
	return append(files, sdk...), err
}

// sdkOf returns the SDK of a language: one file, or a package for Go. The command template needs
// none.
func sdkOf(language string) ([]File, error) {
	paths, err := fs.Glob(embedded, sdks[language])
	if err != nil {
		return nil, err
	}
	var files []File
	for _, file := range paths {
		data, err := embedded.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := path.Base(file)
		if language == "go" {
			name = path.Join(path.Base(path.Dir(file)), name)
		}
		files = append(files, File{name, data})
	}
	return files, nil
}

// noWord matches characters that cannot be part of a tool's name, and a digit at its start.
var noWord = regexp.MustCompile(`^[0-9]|[^A-Za-z0-9_]`)

// toolName returns the prefix of the names of the plugin's tools.
func toolName(name string) string { return noWord.ReplaceAllString(name, "_") }
