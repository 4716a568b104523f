// Package pluginloader will turn directories with a plugin.json into plugins: parse, trust, watch, supervise and swap a
// whole set at once. Its packages do parts of that; it has no code yet.
package pluginloader
