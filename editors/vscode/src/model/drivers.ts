import type { Config, DriverInfo } from "../protocol";

/** DriverEntry is a driver in a list. */
export interface DriverEntry {
  /** for session/new */
  name: string;
  title: string;
  description: string;
  about: string;
}

/** driverEntries describes the drivers of a daemon, its default first. */
export function driverEntries(drivers: readonly DriverInfo[]): DriverEntry[] {
  const ordered = [...drivers.filter((driver) => driver.default), ...drivers.filter((driver) => !driver.default)];
  return ordered.map(({ name, title, about = "", default: first }) => ({
    name,
    title,
    description: [title === name ? "" : name, first ? "default" : ""].filter(Boolean).join(" \u00b7 "),
    about,
  }));
}

/** driverText names the driver of a session for people; empty if it is the standard driver, with which the model calls tools. */
export function driverText({ driver }: Config): string {
  return driver === "standard" ? "" : driver === "rlm" ? "Code cells" : driver;
}
