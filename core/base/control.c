/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams between our processes: fixed layout, cut after the used part of the text, checked on arrival. */
#include <sys/socket.h>

#include <lkg/messages.h>

#define MESSAGE_HEADER offsetof(struct lkg_message, text)

void lkg_message_init(struct lkg_message *message, enum lkg_message_type type)
{
        *message = (struct lkg_message){
                .version = LKG_MESSAGE_VERSION,
                .type = type,
                .component = UINT32_MAX,
                .login_uid = UINT32_MAX,
        };
}

int lkg_message_send(int fd, const struct lkg_message *message)
{
        size_t size = MESSAGE_HEADER + message->text_size;

        if (message->text_size > LKG_MESSAGE_TEXT_MAX)
                return -EMSGSIZE;
        if (send(fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
                return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        return 0;
}

static bool terminated(const char *text, size_t size)
{
        return memchr(text, '\0', size) != NULL;
}

bool lkg_message_is_sound(const struct lkg_message *message)
{
        return message->version == LKG_MESSAGE_VERSION && message->type != 0 &&
               message->type < _LKG_MSG_MAX && message->text_size <= LKG_MESSAGE_TEXT_MAX &&
               terminated(message->command, sizeof(message->command)) &&
               terminated(message->exe, sizeof(message->exe));
}

int lkg_message_recv(int fd, struct lkg_message *ret)
{
        struct lkg_message message = { 0 };
        ssize_t n;

        do
                n = recv(fd, &message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        if (n == 0)
                return 0;
        if ((size_t)n < MESSAGE_HEADER || (size_t)n > sizeof(message) || !lkg_message_is_sound(&message) ||
            (size_t)n != MESSAGE_HEADER + message.text_size)
                return -EBADMSG;
        message.text[message.text_size] = '\0';
        *ret = message;
        return 1;
}

int lkg_message_send_log(int fd, int priority, const struct lkg_log_fields *fields, const char *text)
{
        const char *component = fields && fields->component ? fields->component : "";
        const char *layer = fields && fields->layer ? fields->layer : "";
        struct lkg_message message;

        if (strlen(component) >= sizeof(message.command) || strlen(text) > LKG_MESSAGE_TEXT_MAX)
                return -EMSGSIZE;
        lkg_message_init(&message, LKG_MSG_LOG);
        message.result = priority;
        message.number = fields ? fields->generation : 0;
        (void)snprintf(message.command, sizeof(message.command), "%s", component);
        (void)snprintf(message.exe, sizeof(message.exe), "%s", layer);
        message.text_size = (uint32_t)snprintf(message.text, sizeof(message.text), "%s", text);
        return lkg_message_send(fd, &message);
}
