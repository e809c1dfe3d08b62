/* A bolt's child in C, without any library: emits the words of a sentence, anchored, and acks it. Knows just so much JSON as its
   topology has: texts without escapes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char message[1 << 20];

/* The next message without its "end", in `message`; 0 at the end of the input. */
static int read_message(void) {
    size_t length = 0;
    for (;;) {
        if (!fgets(message + length, (int)(sizeof message - length), stdin)) return 0;
        if (strcmp(message + length, "end\n") == 0) {
            message[length] = 0;
            return 1;
        }
        length += strlen(message + length);
    }
}

/* The text after `key`, up to its closing quote; what follows it is at *rest. */
static char *text_after(char *in, const char *key, char **rest) {
    char *begin = strstr(in, key);
    if (!begin) return NULL;
    begin += strlen(key);
    *rest = strchr(begin, '"');
    if (!*rest) return NULL;
    *(*rest)++ = 0;
    return begin;
}

int main(void) {
    if (!read_message()) return 1;
    char *rest, path[4096];
    char *folder = text_after(message, "\"pidDir\":\"", &rest);
    if (!folder) return 2;
    snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
    FILE *file = fopen(path, "w");
    if (file) fclose(file);
    printf("{\"pid\": %d}\nend\n", (int)getpid());
    fflush(stdout);
    while (read_message()) {
        if (message[0] == '[') continue; /* task ids, which nobody asked for */
        if (strstr(message, "\"__heartbeat\"")) {
            printf("{\"command\": \"sync\"}\nend\n");
        } else {
            char *id = text_after(message, "\"id\":\"", &rest);
            char *sentence = id ? text_after(rest, "\"tuple\":[\"", &rest) : NULL;
            if (!sentence) {
                fprintf(stderr, "not a tuple with a text: %s\n", message);
                return 3;
            }
            for (char *word = strtok(sentence, " "); word; word = strtok(NULL, " "))
                printf("{\"command\": \"emit\", \"anchors\": [\"%s\"], \"tuple\": [\"%s\"], \"need_task_ids\": false}\nend\n",
                       id, word);
            printf("{\"command\": \"ack\", \"id\": \"%s\"}\nend\n", id);
        }
        fflush(stdout);
    }
    return 0;
}
