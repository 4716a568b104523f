/** Place is where a chat can be. */
export type Place = "editor" | "sideBar";

/** Moved is the place to which the user moved a chat last, and the setting at that time. */
export interface Moved {
  place: Place;
  setting: Place;
}

/** placeOfNew returns where chats open: where the user moved one last, until the setting changes. */
export function placeOfNew(moved: Moved | undefined, setting: Place): Place {
  return moved?.setting === setting ? moved.place : setting;
}
