// Package plugins holds what authors of plugins begin with: an SDK for each language, as a file or a package to copy, and a
// plugin that works. What it holds never changes.
package plugins

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

//go:embed templates sdk/python/lashd_plugin.py sdk/typescript/lashd-plugin.mts sdk/go/lashdplugin/*.go
var held embed.FS

// sdks are the files of an SDK, by language. A plugin of commands needs none.
var sdks = map[string]string{
	"python": "sdk/python/*.py", "ts": "sdk/typescript/*.mts", "go": "sdk/go/*/*.go", "command": "",
}

// File is a file of a plugin.
type File struct {
	Path string // in its directory
	Data []byte
}

// New is a plugin that works, with a test and the SDK. Whether the name can be one, package manifest knows.
func New(language, name string) ([]File, error) {
	names := strings.NewReplacer("@NAME@", name, "@TOOL@", toolName(name))
	var files []File
	root := path.Join("templates", language)
	err := fs.WalkDir(held, root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := held.ReadFile(file)
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

// sdkOf is the SDK of a language: one file, or for Go a package.
func sdkOf(language string) ([]File, error) {
	paths, err := fs.Glob(held, sdks[language])
	if err != nil {
		return nil, err
	}
	var files []File
	for _, file := range paths {
		data, err := held.ReadFile(file)
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

var noWord = regexp.MustCompile(`^[0-9]|[^A-Za-z0-9_]`)

// toolName is the beginning of the names of the plugin's tools.
func toolName(name string) string { return noWord.ReplaceAllString(name, "_") }
