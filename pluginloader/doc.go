// Package pluginloader will turn directories with a plugin.json into plugins: parse, trust, watch, supervise and swap a
// whole set at once. It has no code yet.
package pluginloader
