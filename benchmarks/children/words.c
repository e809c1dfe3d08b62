/* A bolt's child in C: splits sentences where its last argument names "split", else counts nothing and acks. It costs next to
   nothing, so what is measured is the engine's side of the multilang protocol. Knows just so much JSON as the benchmark has:
   texts of words, without escapes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char message[1 << 20];

/* The next message without its "end", in `message`; 0 at the end of the input. */
static int read_message(void) {
    size_t length = 0;
    while (fgets(message + length, (int)(sizeof message - length), stdin)) {
        if (strcmp(message + length, "end\n") == 0) {
            message[length] = 0;
            return 1;
        }
        length += strlen(message + length);
    }
    return 0;
}

/* Where the text after `key` begins, and in *length how long it is; keys come in any order. */
static char *text_after(const char *key, int *length) {
    char *begin = strstr(message, key);
    if (!begin) return NULL;
    begin += strlen(key);
    char *end = strchr(begin, '"');
    *length = end ? (int)(end - begin) : 0;
    return end ? begin : NULL;
}

int main(int argc, char **argv) {
    const int splits = argc > 1 && strstr(argv[argc - 1], "split") != NULL;
    if (!read_message()) return 1;
    printf("{\"pid\": %d}\nend\n", (int)getpid());
    fflush(stdout);
    while (read_message()) {
        int id_length, text_length;
        if (message[0] == '[') continue; /* task ids, which nobody asked for */
        if (strstr(message, "\"__heartbeat\"")) {
            printf("{\"command\": \"sync\"}\nend\n");
            fflush(stdout);
            continue;
        }
        char *id = text_after("\"id\":\"", &id_length);
        char *text = text_after("\"tuple\":[\"", &text_length);
        if (!id || !text) {
            fprintf(stderr, "not a tuple with a text: %s\n", message);
            return 3;
        }
        for (char *end = text + text_length; splits && text < end;) {
            char *space = memchr(text, ' ', (size_t)(end - text));
            char *word_end = space ? space : end;
            printf("{\"command\": \"emit\", \"anchors\": [\"%.*s\"], \"tuple\": [\"%.*s\"], \"need_task_ids\": false}\nend\n",
                   id_length, id, (int)(word_end - text), text);
            text = word_end + 1;
        }
        printf("{\"command\": \"ack\", \"id\": \"%.*s\"}\nend\n", id_length, id);
        fflush(stdout);
    }
    return 0;
}
