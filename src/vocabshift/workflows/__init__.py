"""Operations that join several workshops, each from input folders to an output folder."""
